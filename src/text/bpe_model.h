// Byte-pair merging: one piece of text to token ids.
//
// A piece starts as one token a byte, or one a character where the vocabulary names characters. The
// pair of lowest rank is merged first, the leftmost of equal ones, until none is left; the result
// is that of the reference, in O(n log n) for a piece of n bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace paceline {

// Two tokens that become a third. Merges of one rank are equal: the leftmost goes first.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId merged = 0;
  uint32_t rank = 0;
};

// Tokens of single characters, by code point.
class CharTokens {
 public:
  bool empty() const { return cells_.empty(); }
  void add(uint32_t code, TokenId id);
  TokenId of(uint32_t code) const {  // -1: there is none
    const uint16_t page = pages_[code >> 8];
    return page == 0 ? -1 : cells_[static_cast<size_t>(page - 1) * 256 + (code & 0xFF)];
  }

 private:
  std::array<uint16_t, (0x110000 >> 8)> pages_{};  // 1 + a page of cells_; 0: an empty one
  std::vector<TokenId> cells_;
};

class BpeModel {
 public:
  struct Options {
    // If not empty, a piece starts as characters; those without a token become their bytes' tokens.
    CharTokens char_tokens;
    std::array<TokenId, 256> byte_tokens{};  // -1: the vocabulary has no token for this byte
    TokenId unknown = -1;  // stands for bytes, or characters, without token; -1: they are dropped
    bool fuse_unknown = false;  // one `unknown` for a run of them
    // Pieces that are tokens as a whole, taken before any merging. May be empty. The texts outlive
    // the model.
    std::unordered_map<std::string_view, TokenId> whole_pieces;
  };

  // BadFormat when a pair is listed twice, since readers disagree on which of the two counts.
  static Result<BpeModel> make(const std::vector<Merge>& merges, Options options);

  // Appends the ids of one piece, which is valid UTF-8 or, where pieces start as bytes, anything.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  struct Slot {
    uint64_t pair = 0;
    uint32_t rank = kNoRank;  // kNoRank: the slot is free
    TokenId merged = 0;
  };

  void start_bytes(std::string_view piece, std::vector<TokenId>& ids) const;
  void start_chars(std::string_view piece, std::vector<TokenId>& ids) const;
  const Slot& slot(TokenId left, TokenId right) const;  // a free one when they do not merge
  size_t merge_short(TokenId* ids, size_t n) const;
  void merge_long(std::vector<TokenId>& ids, size_t first) const;

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  int shift_ = 63;           // of the hash, to a slot's number
  Options options_;
};

}  // namespace paceline
