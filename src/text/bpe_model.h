// Byte-pair merging: the bytes of one piece to token ids.
//
// The pair of lowest rank is merged first, the leftmost of equal ones, until none is left; the
// result is that of the reference, in O(n log n) for a piece of n bytes.
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

// Two tokens that become a third; its place in the list is its rank.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId merged = 0;
};

class BpeModel {
 public:
  struct Options {
    std::array<TokenId, 256> byte_tokens{};  // -1: the vocabulary has no token for this byte
    TokenId unknown = -1;                    // stands for such bytes; -1: they are dropped
    bool fuse_unknown = false;               // one `unknown` for a run of such bytes
    // Pieces that are tokens as a whole, by their bytes, taken before any merging. May be empty.
    std::unordered_map<std::string, TokenId> whole_pieces;
  };

  // BadFormat when a pair is listed twice, since readers disagree on which of the two counts.
  static Result<BpeModel> make(std::vector<Merge> merges, Options options);

  // Appends the ids of one piece.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  void start(std::string_view piece, std::vector<TokenId>& ids) const;
  uint32_t rank(TokenId left, TokenId right) const;
  size_t merge_short(TokenId* ids, size_t n) const;
  void merge_long(std::vector<TokenId>& ids, size_t first) const;

  struct Slot {
    uint64_t pair = 0;
    uint32_t rank = kNoRank;  // kNoRank: the slot is free
  };
  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  int shift_ = 63;           // of the hash, to a slot's number
  Options options_;
};

}  // namespace paceline
