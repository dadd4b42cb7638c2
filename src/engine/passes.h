// Passes of a trunk, one at a time and behind a fixed number of positions, for timing.
#pragma once

#include <limits>
#include <memory>

#include "base/result.h"
#include "models/model.h"

namespace paceline {

class Passes {
 public:
  // Commits `position` positions, fewer where the context is smaller or prefill_seconds are over,
  // and takes memory for passes of up to max_rows rows, at least 1. TooLarge where the context has
  // no position left in front of them, or the machine no memory.
  static Result<Passes> make(const Model& model, int context, CacheType cache, int position,
                             int max_rows,
                             double prefill_seconds = std::numeric_limits<double>::infinity());

  int position() const { return state_->length(); }  // committed positions in front of the block
  // Runs the control in place of the exact products from now on, or no longer.
  void use_wide(bool wide) { workspace_->wide_kernels = wide; }
  // Seconds of one pass: a block of so many rows, logits of all of them, nothing committed.
  double seconds(int rows);

 private:
  Passes(const Model& model, int block_rows) : model_(&model), block_(block_rows) {}
  void fill_block(int rows);

  const Model* model_;
  Block block_;
  std::unique_ptr<SequenceState> state_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace paceline
