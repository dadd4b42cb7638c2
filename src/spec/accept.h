// Accept: which drafts stand, and the token behind them. Knows tokens and logits only, so it is
// tested without a model.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/mat.h"
#include "base/result.h"
#include "base/types.h"
#include "spec/acceptance.h"
#include "spec/drafter.h"

namespace paceline {

struct Accepted {
  int n_drafts = 0;  // that stand, each the continuation of the one before
  TokenId next = 0;  // the trunk's token behind them: a correction, or the bonus
  std::array<uint8_t, kMostDrafts> path = {};  // their indices

  std::span<const uint8_t> standing() const { return std::span(path).first(n_drafts); }
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

  // Walks down the tree: from the pending token on to the draft that is what the row chooses, for
  // as long as there is one.
  // logits (1 + drafts.size() rows): row 0 scores the token behind the pending one, row 1 + i that
  // behind draft i. A rule may write into a row while it looks at it and leaves it as it was.
  // first_pos: the position of row 0. Rows off the path are not looked at, so that a fault in a
  // void row is no fault. A row without a choice is a fault, BadFormat, as row 0 alone: further
  // down it is left to the next round, which begins with it, because the text may end before it.
  // Allocates nothing unless it fails.
  virtual Result<Accepted> accept(std::span<const Draft> drafts, Mat<float> logits, int first_pos);

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
// There is one for every row of the path.
Accepted accept_greedy(std::span<const Draft> drafts, std::span<const TokenId> choices);

}  // namespace paceline
