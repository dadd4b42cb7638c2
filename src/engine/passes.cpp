#include "engine/passes.h"

#include <algorithm>
#include <chrono>

#include "spec/sequence.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<Passes> Passes::make(const Model& model, int context, CacheType cache, int position,
                            int max_rows, double prefill_seconds) {
  position = std::min(position, context - max_rows);
  if (position < 1) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  }
  const int block_rows = std::max(kPrefillRows, max_rows);
  Passes passes(model, block_rows);
  auto state = model.make_state(position + max_rows, cache);
  if (!state) return state.error();
  passes.state_ = std::move(*state);
  auto workspace = model.make_workspace(block_rows, max_rows);
  if (!workspace) return workspace.error();
  passes.workspace_ = std::move(*workspace);

  const auto start = Clock::now();
  SequenceState& committed = *passes.state_;
  while (committed.length() < position && seconds_since(start) < prefill_seconds) {
    passes.fill_block(std::min(kPrefillRows, position - committed.length()));
    model.forward(passes.block_, committed, LogitRows::None, *passes.workspace_);
    committed.commit(passes.block_.rows());
  }
  return passes;
}

// Some tokens; what a pass costs does not depend on which.
void Passes::fill_block(int rows) {
  block_.reset(state_->length());
  for (int64_t pos = block_.first_pos(); block_.rows() < rows; ++pos) {
    block_.add(static_cast<TokenId>((pos * 7919 + 13) % model_->info().vocab_size));
  }
}

double Passes::seconds(int rows) {
  fill_block(rows);
  const auto start = Clock::now();
  model_->forward(block_, *state_, LogitRows::All, *workspace_);
  const double spent = seconds_since(start);
  state_->commit(0);
  return spent;
}

}  // namespace paceline
