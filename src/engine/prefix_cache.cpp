#include "engine/prefix_cache.h"

#include <algorithm>

namespace paceline {
namespace {

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin());
}

}  // namespace

bool PrefixCache::Entry::covers(const Entry& other) const {
  const auto positions = static_cast<size_t>(other.state->length());
  return state->length() >= other.state->length() && head_length() >= other.head_length() &&
         common_prefix(tokens, other.tokens) >= positions;
}

PrefixCache::Match PrefixCache::find(std::span<const TokenId> tokens, int head_modules) {
  auto best = entries_.end();
  int length = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const int common = static_cast<int>(common_prefix(entry->tokens, tokens)) - head_modules;
    const int held = head_modules > 0 ? entry->head_length() : entry->state->length();
    if (std::min(common, held) <= length) continue;
    length = std::min(common, held);
    best = entry;
  }
  if (best == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, best);
  return {.state = best->state.get(), .head = best->head.get(), .length = length};
}

void PrefixCache::keep(std::span<const TokenId> text, const SequenceState& state,
                       const HeadState* head, int head_length) {
  if (budget_ <= 0) return;
  Entry kept;
  auto trunk = state.fork(0, state.length());  // no memory but what is shared
  if (!trunk || (*trunk)->length() == 0) return;
  kept.state = std::move(*trunk);
  if (head != nullptr) {
    auto rows = head->fork(0, std::min(head_length, kept.state->length()));
    if (rows && (*rows)->length(0) > 0) kept.head = std::move(*rows);
  }
  if (kept.bytes() > budget_) return;
  const size_t positions = static_cast<size_t>(kept.state->length()) + kMostHeadModules;
  const auto tokens = text.first(std::min(text.size(), positions));
  kept.tokens.assign(tokens.begin(), tokens.end());
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->covers(kept)) return;
    const auto next = std::next(entry);
    if (kept.covers(*entry)) drop(entry);
    entry = next;
  }
  bytes_ += kept.bytes();
  entries_.push_front(std::move(kept));
  while (bytes_ > budget_) drop(std::prev(entries_.end()));
}

void PrefixCache::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes();
  entries_.erase(entry);
}

}  // namespace paceline
