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

// Logits of a row to the trunk's own token behind it; -1 when no logit of the row is a finite
// maximum. The greedy choice takes the largest and, of equals, the lowest id; -0.0 equals +0.0.
using Choose = TokenId (*)(std::span<const float> logits);

// A rule is an argument of the round: greedy here; seeded sampling is another one, whose choice
// looks at the position as well.
class AcceptRule {
 public:
  virtual ~AcceptRule() = default;

  // logits (1 + drafts.size() rows): row 0 scores the token behind the pending one, row d that
  // behind the draft at depth d. first_pos: the position of row 0. Rows behind the first draft that
  // falls are not looked at, so that a fault in a void row is no fault. A row without a finite
  // maximum is a fault, BadFormat, as row 0 alone: further down it is left to the next round, which
  // begins with it, because the text may end before it. Allocates nothing unless it fails.
  virtual Result<Accepted> accept(std::span<const TokenId> drafts, Mat<const float> logits,
                                  int first_pos) const = 0;
};

// Takes the longest prefix of drafts of which each is what `choose` picks from the row before it.
class GreedyRule : public AcceptRule {
 public:
  explicit GreedyRule(Choose choose) : choose_(choose) {}
  Result<Accepted> accept(std::span<const TokenId> drafts, Mat<const float> logits,
                          int first_pos) const override;

 private:
  Choose choose_;
};

// The same from choices made before: choices[r] is the trunk's token behind row r, none of them -1.
// choices.size() is at least 1 + the number of drafts that stand.
Accepted accept_greedy(std::span<const TokenId> drafts, std::span<const TokenId> choices);

}  // namespace paceline
