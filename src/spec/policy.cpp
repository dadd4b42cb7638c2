#include "spec/policy.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

// Measured costs are noisy: a draft must promise more than that.
constexpr double kMinGain = 1.005;
constexpr double kMostSavings = 1.5;  // passes of one row; no try that could pay costs more than 1
constexpr int kRest = 5;              // rounds behind a try that fell
// Asking for all drafts is free where they cost less than this together: lookup's are.
constexpr double kFree = 0.002;

constexpr double kPrior = 0.7;  // of any draft
// Asking costs whatever comes of it, so it may take no more than half of what there is to lose at
// the start.
constexpr double kKept = DepthPolicy::kAdvance / 2;

// A number of drafts, and what is expected of a round with them.
struct Promise {
  int n = 0;
  double rate = 0;    // tokens for the cost of a pass
  double tokens = 1;  // of the round
};

// joint(n) that draft n, from 1, and all before it on its path stand; cost(n) of a round.
template <class Joint, class Cost>
Promise most_promising(int n_max, Joint joint, Cost cost) {
  Promise best{.rate = 1 / cost(0)};
  double tokens = 1;
  for (int n = 1; n <= n_max; ++n) {
    tokens += joint(n);
    const double rate = tokens / cost(n);
    if (rate > best.rate * (best.n == 0 ? kMinGain : 1)) best = {n, rate, tokens};
  }
  return best;
}

// Whether more drafts would pay if they all stood wherever they are reached; reached(n): the chance
// that the place of draft n is, given that.
template <class Reached, class Cost>
bool more_could_pay(const Promise& best, int n_max, Reached reached, Cost cost) {
  double tokens = best.tokens;
  for (int n = best.n + 1; n <= n_max; ++n) {
    tokens += reached(n);
    if (tokens / cost(n) > best.rate * kMinGain) return true;
  }
  return false;
}

}  // namespace

DepthPolicy::DepthPolicy() : by_depth_(kPrior), savings_(kMostSavings) {}

int DepthPolicy::ask(int limit, const CostModel& costs, DraftSource source) {
  try_ = {};
  paying_ = nullptr;
  steps_ = 0;
  asked_ = std::min(limit, kMostDrafts);
  const double price = costs.price(source);
  if (asked_ * price <= kFree) return asked_;
  const int n_max = asked_;
  const auto cost = [&](int n) { return costs.verify[n + 1] + n * price; };
  std::array<double, kMostDrafts + 1> joint = {1};
  for (int d = 1; d <= n_max; ++d) joint[d] = joint[d - 1] * by_depth_.chance(d);
  const Promise best = most_promising(
      n_max, [&](int d) { return joint[d]; }, cost);
  asked_ = best.n;
  if (best.n < n_max &&
      more_could_pay(
          best, n_max, [&](int /*n*/) { return joint[best.n]; }, cost) &&
      may_try(cost(best.n + 1) - cost(best.n))) {
    ++asked_;
    try_ = {.cost = price, .runs = false, .rate = best.rate};
  }
  while (asked_ > 0 && cost(asked_) - 1 > lead_ - kKept) --asked_;
  if (asked_ <= best.n) try_ = {};
  return asked_;
}

void DepthPolicy::begin_growth(int n, int depth, const CostModel& costs) {
  try_ = {};
  paying_ = &costs;
  steps_ = 0;
  asked_ = std::min(n, kMostNodes);
  deepest_ = depth;
  // A row must bring as many tokens as its cost would elsewhere, so at least those of plain
  // decoding; half of that leaves room for chances that are too low.
  double least_row = 1;
  for (int m = 1; m <= asked_; ++m)
    least_row = std::min(least_row, costs.verify[m + 1] - costs.verify[m]);
  least_joint_ = least_row / 2;
}

void DepthPolicy::weigh(std::span<const Draft> drafts) {
  for (int i = 0; i < static_cast<int>(drafts.size()); ++i) {
    const int parent = parent_of(drafts, i);
    depths_[i] = parent == kPending ? 1 : depths_[parent] + 1;
    joints_[i] = (parent == kPending ? 1 : joints_[parent]) * chance(drafts[i], depths_[i]);
  }
}

// Whether the round promises more with the step than without, the path gone on with as it begins.
bool DepthPolicy::pays(const Offer& offer) {
  check(paying_ != nullptr, "an offer belongs to a round of a drafter that grows");
  if (try_.cost > 0) return false;  // what is behind a try is not bought
  const CostModel& costs = *paying_;
  const int n_there = static_cast<int>(offer.drafts.size());
  weigh(offer.drafts);
  const double reached = offer.place == kPending ? 1 : joints_[offer.place];
  const int depth = offer.place == kPending ? 0 : depths_[offer.place];
  const auto promise = [&](double next, int steps) {
    double joint = reached;
    return most_promising(
        next > 0 ? std::min(asked_, n_there + deepest_ - depth) : n_there,
        [&](int n) { return n <= n_there ? joints_[n - 1] : joint *= next; },
        [&](int n) {
          const int paid = steps == 0 || n <= n_there ? 0 : steps + n - n_there - 1;
          return costs.verify[n + 1] + (steps_ + paid) * costs.head;
        });
  };
  const Promise without = promise(offer.without, 0);
  const Promise with = promise(offer.with, offer.steps);
  const double price = offer.steps * costs.head;
  const double next_pass = costs.verify[n_there + 2];
  if (next_pass + steps_ * costs.head + price - 1 > lead_ - kKept) return false;
  if (with.n <= n_there || with.rate <= without.rate * kMinGain) {
    const double cost = price + next_pass - costs.verify[n_there + 1];
    const double tokens = without.tokens + reached;  // if it stands
    const bool could_pay =
        without.n >= n_there &&
        tokens / (next_pass + steps_ * costs.head + price) > without.rate * kMinGain;
    if (offer.without > 0 || !could_pay || !may_try(cost)) return false;
    try_ = {.cost = price, .runs = false, .rate = without.rate};
  }
  steps_ += offer.steps;
  return true;
}

int DepthPolicy::choose(std::span<const Draft> drafts, const CostModel& costs) {
  const int n_max = static_cast<int>(drafts.size());
  check(n_max <= asked_, "no more drafts are offered than were asked for");
  double spent = steps_ * costs.head;  // on all drafts, verified or not
  if (paying_ == nullptr)
    for (const Draft& draft : drafts) spent += costs.price(draft.source);
  const auto cost = [&](int n) { return costs.verify[n + 1] + spent; };
  weigh(drafts);
  const Promise best = most_promising(
      n_max, [&](int n) { return joints_[n - 1]; }, cost);
  // The place of draft n, if all drafts behind the best number stood.
  const auto reached = [&](int n) {
    int i = parent_of(drafts, n - 1);
    while (i >= best.n) i = parent_of(drafts, i);
    return i == kPending ? 1 : joints_[i];
  };
  int n = best.n;
  if (n_max < asked_ && paying_ == nullptr)
    try_ = {};  // the one asked for beyond the others did not come
  if (try_.cost > 0 && n == n_max) {
    try_.cost += cost(n) - cost(n - 1);
    try_.runs = true;
  } else if (n < n_max && more_could_pay(best, n_max, reached, cost) &&
             may_try(try_.cost + cost(n + 1) - cost(n))) {
    try_ = {.cost = try_.cost + cost(n + 1) - cost(n), .runs = true, .rate = best.rate};
    ++n;
  }
  for (; n > 0 && cost(n) - 1 > lead_; --n) try_.runs = false;
  cost_ = cost(n);
  held_back_ = n < n_max ? chance(drafts[n], depths_[n]) : -1;
  return n;
}

void DepthPolicy::record(std::span<const Draft> verified, std::span<const uint8_t> standing,
                         int looked_at) {
  const int n = static_cast<int>(verified.size());
  const int n_accepted = static_cast<int>(standing.size());
  const auto stands = [&](int i) {
    return i == kPending || std::ranges::find(standing, i) != standing.end();
  };
  weigh(verified);
  for (int i = 0; i < n; ++i) {
    if (depths_[i] > looked_at || !stands(parent_of(verified, i))) continue;
    const bool stood = stands(i);
    chances_.add(verified[i], depths_[i], stood);
    by_depth_.add(depths_[i], stood ? 1 : 0);
  }
  // Else only good drafts would count, and too many would be asked for.
  if (paying_ == nullptr && n_accepted == n && held_back_ >= 0) by_depth_.add(n + 1, held_back_);

  const bool tested = try_.runs && n > 0 && stands(parent_of(verified, n - 1));
  const bool stood = tested && stands(n - 1);
  savings_ += kAllowance * cost_ - try_.cost + (stood ? 1 / try_.rate : 0);
  savings_ = std::min(savings_, kMostSavings);
  --rest_;
  if (tested) rest_ = stood ? 0 : kRest;
  lead_ += (n_accepted + 1) * (1 + kAllowance) - cost_;
}

}  // namespace paceline
