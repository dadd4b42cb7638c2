#include "text/added_tokens.h"

#include <algorithm>

namespace paceline {

void AddedTokens::add(std::string text, TokenId id) {
  starts_[static_cast<uint8_t>(text[0])] = true;
  entries_.push_back({std::move(text), id});
}

void AddedTokens::sort() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from) const {
  if (entries_.empty()) return std::nullopt;
  for (size_t pos = from; pos < text.size(); ++pos) {
    if (!starts_[static_cast<uint8_t>(text[pos])]) continue;
    if (const auto match = match_at(text, pos)) return match;
  }
  return std::nullopt;
}

// Narrows the sorted entries byte by byte to those that agree with the text; the first of a group
// is the one that ends here, if any does.
std::optional<AddedTokens::Match> AddedTokens::match_at(std::string_view text, size_t pos) const {
  std::optional<Match> best;
  auto first = entries_.begin();
  auto last = entries_.end();
  for (size_t n = 0; pos + n < text.size(); ++n) {
    const auto byte = static_cast<uint8_t>(text[pos + n]);
    const auto at = [n](const Entry& e) { return static_cast<uint8_t>(e.text[n]); };
    if (first != last && first->text.size() == n) ++first;  // ended before this byte
    first = std::partition_point(first, last, [&](const Entry& e) { return at(e) < byte; });
    last = std::partition_point(first, last, [&](const Entry& e) { return at(e) == byte; });
    if (first == last) break;
    if (first->text.size() == n + 1) best = Match{pos, n + 1, first->id};
  }
  return best;
}

}  // namespace paceline
