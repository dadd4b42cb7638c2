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

  // A place behind the text: the drafts on the way there, and the match behind them. Valid until
  // the text grows.
  class Place {
   public:
    int match_length() const { return place_.length; }  // 0: nothing recurs
    std::span<const TokenId> drafts() const { return std::span(drafts_).first(n_drafts_); }

   private:
    friend class OwnText;
    std::array<TokenId, kMostDrafts> drafts_ = {};
    int n_drafts_ = 0;
    SuffixAutomaton::Place walked_;  // of the drafts, as far as they occur in the text itself
    SuffixAutomaton::Place place_;   // the same, or a longer match that runs on into the drafts
  };

  Place end() const;
  // One more draft, kMostDrafts at most, whoever guessed it.
  Place behind(const Place& place, TokenId token) const;

  // What followed the match. Meaningless where its length is 0.
  TokenId next(const Place& place) const { return at(place, place.place_.end + 1); }
  // The last tokens of text and drafts, as many as `room` holds or there are.
  std::span<const TokenId> tail(const Place& place, std::span<TokenId> room) const;

  // A token that followed a suffix of text and drafts.
  struct Guess {
    TokenId token = 0;
    int length = 0;  // of the suffix
  };
  // Tokens that followed the match, then those that followed shorter suffixes, each once; of one
  // suffix the most recent first. next() is the first. Returns how many, down to none.
  int guesses(const Place& place, std::span<Guess> out) const;

 private:
  TokenId at(const Place& place, int index) const;

  SuffixAutomaton text_;
};

}  // namespace paceline
