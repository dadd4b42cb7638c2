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

// A number of drafts, and what is expected of a round with them.
struct Promise {
  int n = 0;
  double rate = 0;    // tokens for the cost of a pass
  double tokens = 1;  // of the round
  double joint = 1;   // chance that all drafts stand
};

// chance(depth) from 1; cost(n) of a round.
template <class Chance, class Cost>
Promise most_promising(int n_max, Chance chance, Cost cost) {
  Promise best{.rate = 1 / cost(0)};
  double joint = 1;
  double tokens = 1;
  for (int n = 1; n <= n_max; ++n) {
    joint *= chance(n);
    tokens += joint;
    const double rate = tokens / cost(n);
    if (rate > best.rate * (best.n == 0 ? kMinGain : 1)) best = {n, rate, tokens, joint};
  }
  return best;
}

// Whether more drafts would pay if they all stood.
template <class Cost>
bool more_could_pay(const Promise& best, int n_max, Cost cost) {
  for (int n = best.n + 1; n <= n_max; ++n) {
    if ((best.tokens + best.joint * (n - best.n)) / cost(n) > best.rate * kMinGain) return true;
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
  const Promise best = most_promising(
      n_max, [&](int d) { return by_depth_.chance(d); }, cost);
  asked_ = best.n;
  if (best.n < n_max && more_could_pay(best, n_max, cost) &&
      may_try(cost(best.n + 1) - cost(best.n))) {
    ++asked_;
    try_ = {.cost = price, .runs = false, .rate = best.rate};
  }
  // Asking costs whatever comes of it, so it may take no more than half of what there is to lose at
  // the start.
  const double lead = lead_ - DepthPolicy::kAdvance / 2;
  while (asked_ > 0 && cost(asked_) - 1 > lead) --asked_;
  if (asked_ <= best.n) try_ = {};
  return asked_;
}

int DepthPolicy::ask_paying(int limit, const CostModel& costs) {
  try_ = {};
  paying_ = &costs;
  steps_ = 0;
  asked_ = std::min(limit, kMostDrafts);
  return asked_;
}

// Whether the round promises more with the draft than without, each gone on with as it begins.
bool DepthPolicy::pays(const Offer& offer) {
  check(paying_ != nullptr, "an offer belongs to a round of a drafter that asks");
  if (try_.cost > 0) return false;  // what is behind a try is not bought
  const CostModel& costs = *paying_;
  const int n_chain = static_cast<int>(offer.chain.size());
  const auto promise = [&](double next, int steps) {
    return most_promising(
        next > 0 ? asked_ : n_chain,
        [&](int d) { return d <= n_chain ? chance(offer.chain[d - 1], d) : next; },
        [&](int n) {
          const int paid = steps == 0 || n <= n_chain ? 0 : steps + n - n_chain - 1;
          return costs.verify[n + 1] + (steps_ + paid) * costs.head;
        });
  };
  const Promise without = promise(offer.without, 0);
  const Promise with = promise(offer.with, offer.steps);
  const double price = offer.steps * costs.head;
  const double next_pass = costs.verify[n_chain + 2];
  if (next_pass + steps_ * costs.head + price - 1 > lead_) return false;
  if (with.n <= n_chain || with.rate <= without.rate * kMinGain) {
    const double cost = price + next_pass - costs.verify[n_chain + 1];
    const double tokens = without.tokens + without.joint;  // if it stands
    const bool could_pay =
        without.n >= n_chain &&
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
  const Promise best = most_promising(
      n_max, [&](int d) { return chance(drafts[d - 1], d); }, cost);
  int n = best.n;
  if (n_max < asked_ && paying_ == nullptr)
    try_ = {};  // the one asked for beyond the others did not come
  if (try_.cost > 0 && n == n_max) {
    try_.cost += cost(n) - cost(n - 1);
    try_.runs = true;
  } else if (n < n_max && more_could_pay(best, n_max, cost) &&
             may_try(try_.cost + cost(n + 1) - cost(n))) {
    try_ = {.cost = try_.cost + cost(n + 1) - cost(n), .runs = true, .rate = best.rate};
    ++n;
  }
  for (; n > 0 && cost(n) - 1 > lead_; --n) try_.runs = false;
  cost_ = cost(n);
  held_back_ = n < n_max ? chance(drafts[n], n + 1) : -1;
  return n;
}

void DepthPolicy::record(std::span<const Draft> verified, int n_accepted) {
  const int n = static_cast<int>(verified.size());
  check(n_accepted >= 0 && n_accepted <= n, "no more drafts stand than were verified");
  for (int i = 0; i < std::min(n, n_accepted + 1); ++i) {
    const Draft& draft = verified[i];
    const bool stood = i < n_accepted;
    chances_.add(draft, i + 1, stood);
    by_depth_.add(i + 1, stood ? 1 : 0);
  }
  // Else only good drafts would count, and too many would be asked for.
  if (n_accepted == n && held_back_ >= 0) by_depth_.add(n + 1, held_back_);

  const bool tested = try_.runs && n_accepted >= n - 1;
  const bool stood = tested && n_accepted == n;
  savings_ += kAllowance * cost_ - try_.cost + (stood ? 1 / try_.rate : 0);
  savings_ = std::min(savings_, kMostSavings);
  --rest_;
  if (tested) rest_ = stood ? 0 : kRest;
  lead_ += (n_accepted + 1) * (1 + kAllowance) - cost_;
}

}  // namespace paceline
