#include "text/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace paceline {

namespace {

uint16_t classes_at(std::string_view text, size_t pos) {
  return UnicodeClasses::get().of(read_utf8(text, pos).code);
}
// Of the character that ends at `end`.
size_t start_of_last(std::string_view text, size_t end) {
  size_t pos = end - 1;
  while (pos > 0 && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80) --pos;
  return pos;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : entries_(std::move(tokens)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  entries_.erase(
      std::unique(entries_.begin(), entries_.end(),
                  [](const AddedToken& a, const AddedToken& b) { return a.text == b.text; }),
      entries_.end());
  for (const AddedToken& token : entries_) starts_[static_cast<uint8_t>(token.text[0])] = true;
  if (std::count(starts_, starts_ + 256, true) == 1)
    only_start_ = static_cast<int>(std::find(starts_, starts_ + 256, true) - starts_);
}

std::optional<TokenId> AddedTokens::id_of(std::string_view text) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), text,
      [](const AddedToken& e, std::string_view wanted) { return e.text < wanted; });
  if (found == entries_.end() || found->text != text) return std::nullopt;
  return found->id;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from,
                                                    size_t left_end, bool read_specials) const {
  if (entries_.empty()) return std::nullopt;
  for (size_t pos = from; pos < text.size();) {
    if (only_start_ >= 0) {  // nearly always '<'
      pos = text.find(static_cast<char>(only_start_), pos);
      if (pos == text.npos) break;
    }
    const AddedToken* token =
        starts_[static_cast<uint8_t>(text[pos])] ? longest_at(text, pos) : nullptr;
    if (token == nullptr) {
      ++pos;
      continue;
    }
    if (read_specials || !token->is_special)
      if (const auto found = match(text, pos, *token, left_end)) return found;
    pos += token->text.size();
  }
  return std::nullopt;
}

std::optional<AddedTokens::Match> AddedTokens::find_within(std::string_view text, size_t from,
                                                           size_t to, size_t left_end) const {
  for (size_t pos = from; pos < to; ++pos) {
    if (!starts_[static_cast<uint8_t>(text[pos])]) continue;
    if (const AddedToken* token = longest_at(text.substr(0, to), pos))
      if (const auto found = match(text, pos, *token, left_end)) return found;
  }
  return std::nullopt;
}

// Narrows the sorted entries byte by byte to those that agree with the text; the first of a group
// is the one that ends here, if any does.
const AddedToken* AddedTokens::longest_at(std::string_view text, size_t pos) const {
  const AddedToken* best = nullptr;
  auto first = entries_.begin();
  auto last = entries_.end();
  for (size_t n = 0; pos + n < text.size(); ++n) {
    const auto byte = static_cast<uint8_t>(text[pos + n]);
    const auto at = [n](const AddedToken& e) { return static_cast<uint8_t>(e.text[n]); };
    if (first != last && first->text.size() == n) ++first;  // ended before this byte
    first = std::partition_point(first, last, [&](const AddedToken& e) { return at(e) < byte; });
    last = std::partition_point(first, last, [&](const AddedToken& e) { return at(e) == byte; });
    if (first == last) break;
    if (first->text.size() == n + 1) best = &*first;
  }
  return best;
}

std::optional<AddedTokens::Match> AddedTokens::match(std::string_view text, size_t pos,
                                                     const AddedToken& token,
                                                     size_t left_end) const {
  const size_t own_end = pos + token.text.size();
  Match found{pos, own_end, own_end, token.id};
  if (token.whole_word) {
    if (pos > 0 && (classes_at(text, start_of_last(text, pos)) & kWord)) return std::nullopt;
    if (found.end < text.size() && (classes_at(text, found.end) & kWord)) return std::nullopt;
  }
  while (token.takes_left && found.begin > left_end) {
    const size_t before = start_of_last(text, found.begin);
    if (!(classes_at(text, before) & kSpace)) break;
    found.begin = before;
  }
  while (token.takes_right && found.end < text.size()) {
    const Utf8Char c = read_utf8(text, found.end);
    if (!(UnicodeClasses::get().of(c.code) & kSpace)) break;
    found.end += static_cast<size_t>(c.length);
  }
  return found;
}

}  // namespace paceline
