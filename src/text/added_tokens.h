// Finding tokens that are written out in a text and are cut from it before anything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace paceline {

struct AddedToken {
  std::string text;  // not empty
  TokenId id = 0;
  bool is_special = false;
  bool takes_left = false;   // the white space before it belongs to it (lstrip)
  bool takes_right = false;  // and that behind it (rstrip)
  bool whole_word = false;   // not read inside a word (single_word)
};

class AddedTokens {
 public:
  // Of several tokens with one text the first counts.
  explicit AddedTokens(std::vector<AddedToken> tokens = {});
  bool empty() const { return entries_.empty(); }
  std::optional<TokenId> id_of(std::string_view text) const;

  struct Match {
    size_t begin = 0, end = 0;  // with the white space that it takes
    size_t next = 0;            // the end of its own text, from where to look on
    TokenId id = 0;
  };
  // The first match whose own text starts at or behind `from`: the leftmost, the longest of those
  // that start there. White space before `left_end` is never taken. Without read_specials, special
  // tokens, and whatever else could be read inside their text, are passed over.
  std::optional<Match> find(std::string_view text, size_t from, size_t left_end,
                            bool read_specials) const;
  // The same, but only for tokens whose own text lies in text[from, to).
  std::optional<Match> find_within(std::string_view text, size_t from, size_t to,
                                   size_t left_end) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t pos) const;
  std::optional<Match> match(std::string_view text, size_t pos, const AddedToken& token,
                             size_t left_end) const;

  std::vector<AddedToken> entries_;  // by text
  bool starts_[256] = {};            // bytes with which one begins
  int only_start_ = -1;              // the only such byte, if there is only one
};

}  // namespace paceline
