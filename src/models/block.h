// A block: what the trunk reads in one pass. In decoding it is the pending token and the drafts
// behind it; in prefill, a chunk of the prompt.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace paceline {

// Rows form a tree: each names the row that it continues. A chain, where every row continues the
// one before it, is the simple case. What a row gives is what it gives as the last row of the chain
// that consists of its path, bit for bit. A block with branches has kMostTreeRows rows at most.
// Memory is taken once, in the constructor.
class Block {
 public:
  static constexpr int kNoParent = -1;  // the row continues the last committed position

  explicit Block(int capacity);

  // Empties the block. Its roots will stand at position first_pos, the length of the cache.
  void reset(int first_pos);
  // Appends a row that continues row `parent` and returns its index.
  int add(TokenId token, int parent);
  // Appends a row that continues the last one.
  int add(TokenId token) { return add(token, rows() - 1); }

  int rows() const { return static_cast<int>(tokens_.size()); }
  int capacity() const { return capacity_; }
  int first_pos() const { return first_pos_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int> parents() const { return parents_; }
  std::span<const int> positions() const { return positions_; }
  // Rows on the longest path.
  int depth() const { return depth_; }

 private:
  int capacity_;
  int first_pos_ = 0;
  int depth_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  std::vector<int> positions_;
};

}  // namespace paceline
