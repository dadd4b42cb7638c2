#include "models/block.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

Block::Block(int capacity) : capacity_(capacity) {
  tokens_.reserve(capacity);
  parents_.reserve(capacity);
  positions_.reserve(capacity);
}

void Block::reset(int first_pos) {
  first_pos_ = first_pos;
  depth_ = 0;
  tokens_.clear();
  parents_.clear();
  positions_.clear();
}

int Block::add(TokenId token, int parent) {
  const int row = rows();
  check(row < capacity_, "a block holds no more rows than it was made for");
  check(parent >= kNoParent && parent < row, "a row continues an earlier row");
  tokens_.push_back(token);
  parents_.push_back(parent);
  positions_.push_back(parent == kNoParent ? first_pos_ : positions_[parent] + 1);
  depth_ = std::max(depth_, positions_.back() + 1 - first_pos_);
  return row;
}

}  // namespace paceline
