// A suffix automaton that grows with the text, to find at any time the longest suffix of the text
// that has occurred before, and where.
// Source: Blumer et al. 1985, "The smallest automaton recognizing the subwords of a text".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace paceline {

// A state stands for a set of substrings that end at the same places; its suffix link leads to the
// longest suffix of them that ends at further places. The state of the whole text is linked to the
// longest suffix that occurs elsewhere, which is the match we look for.
//
// For n tokens there are at most 2n states and 3n transitions. All transitions live in one
// open-addressing hash table keyed by (state, token); those of one state are chained too, since a
// state that is split copies them. No transition is ever removed, so the copies are paid for by the
// bound on transitions: append costs O(1) amortised.
class SuffixAutomaton {
 public:
  // max_climb: how many links above the match are told of a new occurrence in one append. Within it
  // the occurrence reported is the most recent one; in text so repetitive that more suffixes recur
  // at once, short matches may report an older one. It bounds the cost of an append.
  explicit SuffixAutomaton(int max_climb = 32) : max_climb_(max_climb) {}

  // An empty text that may grow to `capacity` tokens. Takes all memory.
  void begin(int capacity);
  // Tokens are not negative.
  void append(TokenId token);

  std::span<const TokenId> text() const { return text_; }
  // Length of the longest suffix of the text that also ends earlier in it; the two may overlap.
  int match_length() const { return match_length_; }
  // Index of the last token of that earlier occurrence, the most recent one. Meaningless when
  // match_length() is 0.
  int match_end() const { return match_end_; }

  // A string that occurs in the text.
  struct Place {
    int state = 0;
    int length = 0;
    int end = -1;  // index of its last token, at its most recent occurrence but for max_climb
  };
  // The longest suffix of the text that also ends earlier in it.
  Place match() const;
  // The longest suffix of the string at `place` and `token` behind it that occurs in the text; of
  // length 0 where none does. Walking n tokens costs O(n) altogether.
  Place extended(Place place, TokenId token) const;
  // The longest suffix of the string at `place` that also occurs where the string does not; of
  // length 0 where there is none. Its `end` says nothing.
  Place shorter(Place place) const;

  // A token that followed a string.
  struct Follower {
    TokenId token = 0;
    int end = -1;  // index of the token, at its most recent occurrence but for max_climb
  };
  // Tokens that followed the string at `place` anywhere, in no order; of many, some. Returns how
  // many.
  int followers(Place place, std::span<Follower> out) const;

 private:
  static constexpr int kRoot = 0;
  static constexpr int kNone = -1;

  struct State {
    int length = 0;          // of its longest string
    int link = kNone;        // suffix link
    int recent = 0;          // the most recent place where it ends, but see max_climb
    int first_slot = kNone;  // head of its chain of transitions
  };
  struct Slot {
    int state = kNone;  // kNone: free
    TokenId token = 0;
    int target = 0;
    int next_slot = kNone;  // next transition of the same state
  };

  size_t probe(int state, TokenId token) const;
  Slot* find(int state, TokenId token);
  const Slot* find(int state, TokenId token) const;
  void add_transition(int state, TokenId token, int target);
  int split(int from, TokenId token, int target);
  void update_match(int whole, int end);

  int max_climb_;
  int capacity_ = 0;
  int last_ = kRoot;  // the state of the whole text
  int match_length_ = 0;
  int match_end_ = 0;
  size_t slot_mask_ = 0;
  std::vector<TokenId> text_;
  std::vector<State> states_;
  std::vector<Slot> slots_;
};

}  // namespace paceline
