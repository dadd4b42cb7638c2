// Finding tokens that are written out in a text and are cut from it before anything else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace paceline {

class AddedTokens {
 public:
  // `text` is not empty and was not added before.
  void add(std::string text, TokenId id);
  // To be called when all are added, before find.
  void sort();
  bool empty() const { return entries_.empty(); }

  struct Match {
    size_t pos = 0;
    size_t length = 0;
    TokenId id = 0;
  };
  // The leftmost match at or behind `from`, the longest of those that start there.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Entry {
    std::string text;
    TokenId id = 0;
  };
  std::optional<Match> match_at(std::string_view text, size_t pos) const;

  std::vector<Entry> entries_;  // by text
  bool starts_[256] = {};       // bytes with which one begins
};

}  // namespace paceline
