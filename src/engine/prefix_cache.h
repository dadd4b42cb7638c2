// What earlier sequences have read, so that a prompt that begins like one of them is not read
// again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "models/model.h"

namespace paceline {

// Beginnings of texts with the state behind them, held by reference (SequenceState::fork). By the
// row rule a position's bytes depend on the tokens up to it alone, so taking them over changes
// nothing but the time. The least recently used go when `budget` bytes are passed; what entries
// share with each other is counted for each.
class PrefixCache {
 public:
  explicit PrefixCache(int64_t budget) : budget_(budget) {}

  struct Match {
    const SequenceState* state = nullptr;  // none: nothing begins alike
    int length = 0;                        // positions in common
  };
  // The entry that has most in common with the beginning of `tokens`. Valid until the next keep.
  Match find(std::span<const TokenId> tokens);

  // Keeps what `state` holds of `text`, whose beginning is what it has read.
  void keep(std::span<const TokenId> text, const SequenceState& state);

  int64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<TokenId> tokens;  // as many as the state holds positions
    std::unique_ptr<SequenceState> state;
  };
  void drop(std::list<Entry>::iterator entry);

  int64_t budget_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace paceline
