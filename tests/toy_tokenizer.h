// A tokenizer whose tokens are given by the test.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace paceline {

class ToyTokenizer : public Tokenizer {
 public:
  // pieces[id]: the bytes of a token; `special`: ids that are special.
  explicit ToyTokenizer(std::vector<std::string> pieces, std::vector<TokenId> special = {})
      : pieces_(std::move(pieces)), special_(std::move(special)) {}

  int vocab_size() const override { return static_cast<int>(pieces_.size()); }
  std::string description() const override { return "toy"; }
  // Byte by byte; bytes without a token of their own are left out.
  void encode(std::string_view text, bool /*read_specials*/, std::vector<TokenId>& ids,
              bool /*continues*/) const override {
    for (const char c : text) {
      for (size_t id = 0; id < pieces_.size(); ++id) {
        if (pieces_[id] == std::string_view(&c, 1)) {
          ids.push_back(static_cast<TokenId>(id));
          break;
        }
      }
    }
  }
  std::string_view bytes(TokenId id) const override {
    if (id < 0 || id >= vocab_size()) return {};
    return pieces_[id];
  }
  bool is_special(TokenId id) const override {
    for (const TokenId special : special_) {
      if (special == id) return true;
    }
    return false;
  }
  const AddedTokens& specials() const override { return no_specials_; }
  int spaces_off_front() const override { return 0; }
  std::optional<TokenId> bos() const override { return {}; }
  bool adds_bos() const override { return false; }
  std::span<const TokenId> end_ids() const override { return {}; }

 private:
  std::vector<std::string> pieces_;
  std::vector<TokenId> special_;
  AddedTokens no_specials_;
};

// n tokens of two letters each, all different: "aa", "ab" ... up to n = 676.
inline std::vector<std::string> letter_pairs(int n) {
  std::vector<std::string> pieces;
  for (int i = 0; i < n; ++i) {
    pieces.push_back({static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)});
  }
  return pieces;
}

}  // namespace paceline
