// Where a generation hands what its trunk committed, for whoever records it.
#pragma once

#include <span>

#include "base/mat.h"
#include "base/tap.h"
#include "base/types.h"
#include "spec/drafter.h"

namespace paceline {

// The calls come inside steps, on the thread that steps. With several generations in one pass each
// has a sink of its own.
class RowSink {
 public:
  virtual ~RowSink() = default;

  // The hiddens that rows() is to be handed.
  virtual Tap tap() const = 0;

  // Row i of `hidden` (next.size() rows, dim) is the trunk's hidden of the token before next[i].
  // Every committed row is handed over exactly once, in the order of positions, from the prompt's
  // first, those of a beginning that was read before among them.
  virtual void rows(std::span<const TokenId> next, Mat<const float> hidden) = 0;

  // A token of the output, and whether it is the largest of the raw logits. Before its rows().
  virtual void chosen(TokenId id, bool own_top1) = 0;

  // A round in which the trunk verified drafts, at least one. Before its rows().
  virtual void drafted(std::span<const Draft> drafts, int n_accepted) = 0;
};

}  // namespace paceline
