#include "spec/union.h"

#include <algorithm>

namespace paceline {
namespace {

// Where own text or store are as sure as that, a head could hardly do better.
constexpr double kSure = 0.8;

// What the head adds where nothing else is known: of that share of the drafts that would fall it
// makes good.
constexpr double kHeadAdds = 0.35;

// The chance that a store's guess stands, from what it counted behind a context of 1, 2 ... tokens:
// kShare * count / (total + kDoubt). As measured on a small trunk's answers to other prompts.
constexpr std::array<double, NgramStore::kOrders> kShare = {0.35, 0.85, 0.95};
constexpr std::array<double, NgramStore::kOrders> kDoubt = {2, 1.5, 1.0};

uint8_t level_of(double chance) {
  return static_cast<uint8_t>(
      std::min(static_cast<int>(chance * kEvidenceLevels), kEvidenceLevels - 1));
}

Draft store_draft(const StoreGuess& guess) {
  const double chance =
      kShare[guess.order - 1] * guess.count / (guess.total + kDoubt[guess.order - 1]);
  return {.token = guess.token, .source = DraftSource::Store, .evidence = level_of(chance)};
}

}  // namespace

UnionDrafter::UnionDrafter(std::shared_ptr<const NgramStore> store,
                           std::unique_ptr<TokenDrafter> head)
    : store_(std::move(store)), head_(std::move(head)) {}

void UnionDrafter::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(prompt, capacity);
  if (head_) head_->begin(prompt, capacity);
  chances_ = DraftChances();
  for (int level = 0; level < kEvidenceLevels; ++level) {
    const double without = (level + 0.5) / kEvidenceLevels;
    asked_[level] = Acceptance(without + (1 - without) * kHeadAdds);
  }
  proposed_.clear();
  proposed_.reserve(kMostDrafts);
}

void UnionDrafter::prefill(std::span<const TokenId> next, Mat<const float> hidden) {
  if (head_) head_->prefill(next, hidden);
}

void UnionDrafter::observe(std::span<const TokenId> tokens, Mat<const float> hidden) {
  for (size_t i = 0; i < std::min(tokens.size(), proposed_.size()); ++i) {
    const auto& [draft, without] = proposed_[i];
    const int depth = static_cast<int>(i) + 1;
    const bool stood = tokens[i] == draft.token;
    chances_.add(draft, depth, stood);
    if (without >= 0) asked_at(without).add(depth, stood ? 1 : 0);
    if (!stood) break;
  }
  proposed_.clear();
  text_.append(tokens);
  if (head_) head_->observe(tokens, hidden);
}

Acceptance& UnionDrafter::asked_at(double chance_without) {
  return asked_[level_of(chance_without)];
}

UnionDrafter::Candidate UnionDrafter::likelier(const Candidate& best, const Draft& draft,
                                               int depth) const {
  const double chance = chances_.chance(draft, depth);
  return chance > best.chance ? Candidate{draft, chance} : best;
}

UnionDrafter::Candidate UnionDrafter::for_nothing(int depth) const {
  Candidate best;
  if (const int length = text_.match_length(); length > 0) {
    const int level = std::min(length, kEvidenceLevels - 1);
    best = likelier(best,
                    {.token = text_.next(),
                     .source = DraftSource::Lookup,
                     .evidence = static_cast<uint8_t>(level)},
                    depth);
  }
  if (store_ != nullptr) {
    std::array<TokenId, NgramStore::kOrders> room;
    const StoreGuess guess = store_->next(text_.tail(room));
    if (guess.token >= 0) best = likelier(best, store_draft(guess), depth);
  }
  return best;
}

Draft UnionDrafter::ask_head() {
  if (head_read_ == 0) head_->start();
  head_read_ = static_cast<int>(text_.drafts().size()) + 1;
  return head_->next(text_.drafts());
}

int UnionDrafter::draft(std::span<Draft> out) {
  AlwaysPays always;
  return draft_asking(out, always);
}

int UnionDrafter::draft_asking(std::span<Draft> out, PayRule& rule) {
  text_.rewind();
  proposed_.clear();
  head_read_ = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const int depth = static_cast<int>(i) + 1;
    Candidate best = for_nothing(depth);
    double without = -1;
    if (head_ != nullptr && best.chance < kSure &&
        rule.pays({.chain = out.first(i),
                   .without = best.chance,
                   .with = asked_at(best.chance).chance(depth),
                   .steps = depth - head_read_})) {
      without = best.chance;
      best = likelier(best, ask_head(), depth);
    }
    if (best.chance <= 0) break;
    out[i] = best.draft;
    text_.add_draft(best.draft.token);
    proposed_.push_back({best.draft, without});
  }
  return static_cast<int>(proposed_.size());
}

}  // namespace paceline
