#include "measure/passes.h"

#include <algorithm>
#include <chrono>

namespace paceline::measure {
namespace {

// Some token of the vocabulary; the cost of a pass does not depend on which.
TokenId some_token(int index, int vocab_size) {
  return static_cast<TokenId>((static_cast<int64_t>(index) * 7919 + 13) % vocab_size);
}

}  // namespace

Result<Passes> Passes::make(const Engine& engine, int position, int max_rows) {
  position = std::min(position, engine.context() - max_rows);
  if (position < 1)
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  const Model& model = engine.model();
  Passes passes(model, position, max_rows);
  auto state = model.make_state(position + max_rows, engine.cache_type());
  if (!state) return state.error();
  passes.state_ = std::move(*state);
  auto workspace = model.make_workspace(max_rows, max_rows);
  if (!workspace) return workspace.error();
  passes.workspace_ = std::move(*workspace);

  SequenceState& committed = *passes.state_;
  Block& block = passes.block_;
  while (committed.length() < position) {
    block.reset(committed.length());
    while (block.rows() < max_rows && block.first_pos() + block.rows() < position)
      block.add(some_token(block.first_pos() + block.rows(), model.info().vocab_size));
    model.forward(block, committed, LogitRows::None, *passes.workspace_);
    committed.commit(block.rows());
  }
  return passes;
}

double Passes::seconds(int rows) {
  block_.reset(position_);
  for (int i = 0; i < rows; ++i) block_.add(some_token(i, model_->info().vocab_size));
  const auto begin = std::chrono::steady_clock::now();
  model_->forward(block_, *state_, LogitRows::All, *workspace_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace paceline::measure
