// Passes of a trunk, one at a time and behind a fixed number of positions, for timing.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/engine.h"

namespace paceline::measure {

class Passes {
 public:
  // Commits `position` positions, fewer where the context is smaller, and takes memory for passes
  // of up to max_rows rows.
  static Result<Passes> make(const Engine& engine, int position, int max_rows);

  int position() const { return position_; }  // committed positions in front of the block
  int max_rows() const { return max_rows_; }
  // Runs the control in place of the exact products from now on, or no longer.
  void use_wide(bool wide) { workspace_->wide_kernels = wide; }
  // Seconds of one pass: a block of so many rows, logits of all of them, nothing committed.
  double seconds(int rows);

 private:
  Passes(const Model& model, int position, int max_rows)
      : model_(&model), position_(position), max_rows_(max_rows), block_(max_rows) {}

  const Model* model_;
  int position_;
  int max_rows_;
  Block block_;
  std::unique_ptr<SequenceState> state_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace paceline::measure
