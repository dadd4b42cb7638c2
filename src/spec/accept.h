// Accept: which drafts stand, and the token behind them. Knows tokens and logits only, so it is
// tested without a model.
#pragma once

#include <span>

#include "base/mat.h"
#include "base/result.h"
#include "base/types.h"

namespace paceline {

struct Accepted {
  int n_drafts = 0;  // the first n_drafts of the drafts stand
  TokenId next = 0;  // the trunk's token behind them: a correction, or the bonus when all stand
};

// A rule says which token a row of logits chooses; a draft stands iff it is that token. So the text
// is the same whatever was drafted. One rule a sequence: greedy here, seeded sampling in
// spec/sampling.h, whose choice looks at the text so far and the position as well.
class AcceptRule {
 public:
  virtual ~AcceptRule() = default;

  // A new sequence, whose text so far is the prompt. capacity: the tokens that prompt and output
  // may have together. All memory is taken here: the calls below run inside rounds.
  virtual void begin(std::span<const TokenId> /*prompt*/, int /*capacity*/) {}

  // Takes the longest prefix of drafts of which each is what the row before it chooses.
  // logits (1 + drafts.size() rows): row 0 scores the token behind the pending one, row d that
  // behind the draft at depth d. A rule may write into a row while it looks at it and leaves it as
  // it was. first_pos: the position of row 0. Rows behind the first draft that falls are not looked
  // at, so that a fault in a void row is no fault. A row without a choice is a fault, BadFormat, as
  // row 0 alone: further down it is left to the next round, which begins with it, because the text
  // may end before it. Allocates nothing unless it fails.
  virtual Result<Accepted> accept(std::span<const TokenId> drafts, Mat<float> logits,
                                  int first_pos);

  // These tokens were emitted and are part of the text now.
  virtual void commit(std::span<const TokenId> /*tokens*/) {}

 private:
  // The token for `position`, from the row of logits before it; -1 when there is none, because no
  // logit is a finite maximum. drafts: tokens between the text so far and `position`, which are
  // part of the text if this row counts at all.
  virtual TokenId choose(std::span<float> logits, int position,
                         std::span<const TokenId> drafts) = 0;
};

// Logits to the largest and, of equals, the lowest id, -0.0 equal to +0.0; -1 when no logit is a
// finite maximum.
using Choose = TokenId (*)(std::span<const float> logits);

class GreedyRule : public AcceptRule {
 public:
  explicit GreedyRule(Choose pick) : pick_(pick) {}

 private:
  TokenId choose(std::span<float> logits, int /*position*/,
                 std::span<const TokenId> /*drafts*/) override {
    return pick_(logits);
  }

  Choose pick_;
};

// The same from choices made before: choices[r] is the trunk's token behind row r, none of them -1.
// choices.size() is at least 1 + the number of drafts that stand.
Accepted accept_greedy(std::span<const TokenId> drafts, std::span<const TokenId> choices);

}  // namespace paceline
