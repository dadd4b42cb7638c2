// The request's own text, prompt and output, and what it says of the tokens behind it.
#pragma once

#include <array>
#include <span>

#include "spec/acceptance.h"
#include "spec/suffix_automaton.h"

namespace paceline {

// The longest suffix of text and drafts that occurred before, at its most recent place, and the
// token that followed it there. Where that runs into the end of the text it goes on with the drafts
// themselves, so a short cycle is drafted to any depth. Appending a token costs O(1) amortised, a
// draft as well.
class OwnText {
 public:
  void begin(std::span<const TokenId> prompt, int capacity);
  void append(std::span<const TokenId> tokens);

  // Back to the end of the text: no drafts.
  void rewind();
  // One more draft behind the text, kMostDrafts at most, whoever guessed it.
  void add_draft(TokenId token);

  // Length of the match behind text and drafts; 0: nothing recurs.
  int match_length() const { return place_.length; }
  // What followed it. Meaningless when match_length() is 0.
  TokenId next() const { return at(place_.end + 1); }
  // The last tokens of text and drafts, as many as `room` holds or there are.
  std::span<const TokenId> tail(std::span<TokenId> room) const;
  // The drafts.
  std::span<const TokenId> drafts() const { return std::span(drafts_).first(n_drafts_); }

 private:
  TokenId at(int index) const;

  SuffixAutomaton text_;
  std::array<TokenId, kMostDrafts> drafts_ = {};
  int n_drafts_ = 0;
  SuffixAutomaton::Place walked_;  // of the drafts, as far as they occur in the text itself
  SuffixAutomaton::Place place_;   // the same, or a longer match that runs on into the drafts
};

}  // namespace paceline
