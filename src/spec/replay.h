// Replay: the rounds that a drafter would have run over a text that is already written. No trunk:
// what it chose and its hiddens were recorded.
#pragma once

#include <functional>
#include <span>

#include "spec/counts.h"
#include "spec/round.h"

namespace paceline {

struct RecordedText {
  std::span<const TokenId> tokens;  // prompt, then output: at least one token each
  int n_prompt = 0;
  // Tokens that the output could have had, at least those that it has. Where it has fewer, its last
  // token ended it: an end token, or one that completed a stop string. For a text that was cut, or
  // interrupted, the tokens that are left.
  int budget = 0;
  // Writes the trunk's hidden of tokens[row], for rows 0 to tokens.size() - 2, in the tap that the
  // drafter asks for. May be null for a drafter that looks at none, which then gets rows of no
  // width.
  std::function<void(int row, std::span<float> out)> hidden = {};
  int dim = 0;
};

// The round of spec/round.h itself, with the record in the trunk's place: the drafter gets the
// calls of a live run of the same request (its prompt read from the start) and what is counted is
// what a live run counts, integer for integer; whether the text was drawn greedily or sampled makes
// no difference. That is at a fixed depth: a live policy decides by costs that it measures. Several
// may run at once, each with a drafter of its own.
RoundCounts replay_stream(const RecordedText& text, Drafter& drafter, const Depth& depth);

}  // namespace paceline
