#include "engine/prefix_cache.h"

#include <algorithm>

namespace paceline {
namespace {

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin());
}

}  // namespace

PrefixCache::Match PrefixCache::find(std::span<const TokenId> tokens) {
  auto best = entries_.end();
  size_t length = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const size_t common = common_prefix(entry->tokens, tokens);
    if (common <= length) continue;
    length = common;
    best = entry;
  }
  if (best == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, best);
  return {.state = best->state.get(), .length = static_cast<int>(length)};
}

void PrefixCache::keep(std::span<const TokenId> text, const SequenceState& state) {
  if (budget_ <= 0) return;
  auto kept = state.fork(0, state.length());  // no memory but what is shared
  if (!kept || (*kept)->length() == 0 || (*kept)->bytes() > budget_) return;
  const auto tokens = text.first(static_cast<size_t>((*kept)->length()));
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const size_t common = common_prefix(entry->tokens, tokens);
    if (common == tokens.size()) return;  // it is there already
    const auto next = std::next(entry);
    if (common == entry->tokens.size()) drop(entry);  // the new one holds it
    entry = next;
  }
  bytes_ += (*kept)->bytes();
  entries_.push_front({{tokens.begin(), tokens.end()}, std::move(*kept)});
  while (bytes_ > budget_) drop(std::prev(entries_.end()));
}

void PrefixCache::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->state->bytes();
  entries_.erase(entry);
}

}  // namespace paceline
