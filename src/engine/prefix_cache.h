// What earlier sequences have read, so that a prompt that begins like one of them is not read
// again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "models/draft_head.h"
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
    const HeadState* head = nullptr;       // where one was asked for
    int length = 0;                        // positions in common
  };
  // The entry that has most in common with the beginning of `tokens`. Valid until the next keep.
  // Where a draft head of so many modules goes on with the sequence, only what entries hold for
  // heads counts: the rows of all modules below `length`, which depend on that many more tokens.
  Match find(std::span<const TokenId> tokens, int head_modules = 0);

  // Keeps what `state` holds of `text`, whose beginning is what it has read; beside it the first
  // head_length rows of a head's, whose tokens are of the same text.
  void keep(std::span<const TokenId> text, const SequenceState& state,
            const HeadState* head = nullptr, int head_length = 0);

  int64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<TokenId> tokens;  // of the state's positions, and some that followed
    std::unique_ptr<SequenceState> state;
    std::unique_ptr<HeadState> head;  // or none

    int head_length() const { return head == nullptr ? 0 : head->length(0); }
    int64_t bytes() const { return state->bytes() + (head == nullptr ? 0 : head->bytes()); }
    // Whether it serves whatever `other` does.
    bool covers(const Entry& other) const;
  };
  void drop(std::list<Entry>::iterator entry);

  int64_t budget_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace paceline
