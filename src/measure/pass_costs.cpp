#include "measure/pass_costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "measure/statistics.h"

namespace paceline::measure {
namespace {

// Some token of the vocabulary; the cost of a pass does not depend on which.
TokenId some_token(int index, int vocab_size) {
  return static_cast<TokenId>((static_cast<int64_t>(index) * 7919 + 13) % vocab_size);
}

double seconds_of_pass(const Model& model, const Block& block, SequenceState& state,
                       Workspace& workspace) {
  const auto begin = std::chrono::steady_clock::now();
  model.forward(block, state, LogitRows::All, workspace);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Result<PassCosts> measure_passes(const Engine& engine, int position, int repeats,
                                 const std::function<bool()>& stop) {
  constexpr int kRows = PassCosts::kMostRows;
  PassCosts costs;
  costs.position = std::min(position, engine.context() - kRows);
  if (costs.position < 1) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  }
  const Model& model = engine.model();
  auto state = model.make_state(costs.position + kRows, engine.cache_type());
  if (!state) return state.error();
  auto workspace = model.make_workspace(kRows, kRows);
  if (!workspace) return workspace.error();

  const int vocab_size = model.info().vocab_size;
  Block block(kRows);
  while ((*state)->length() < costs.position) {
    block.reset((*state)->length());
    while (block.rows() < kRows && block.first_pos() + block.rows() < costs.position) {
      block.add(some_token(block.first_pos() + block.rows(), vocab_size));
    }
    model.forward(block, **state, LogitRows::None, **workspace);
    (*state)->commit(block.rows());
  }

  std::array<std::vector<double>, kRows + 1> seconds;
  for (int repeat = -1; repeat < repeats && !(stop && stop()); ++repeat) {
    for (int turn = 0; turn < kRows; ++turn) {
      const int rows = repeat % 2 == 0 ? turn + 1 : kRows - turn;  // there and back again
      block.reset(costs.position);
      for (int i = 0; i < rows; ++i) block.add(some_token(i, vocab_size));
      const double spent = seconds_of_pass(model, block, **state, **workspace);
      if (repeat >= 0) seconds[rows].push_back(spent);  // the first time round warms up
    }
  }
  if (seconds[1].empty()) return Error{ErrorCode::Interrupted, "interrupted"};
  costs.one_row_seconds = median(seconds[1]);
  for (int rows = 1; rows <= kRows; ++rows) {
    const double middle = median(seconds[rows]);
    const Interval interval = median_interval(seconds[rows], static_cast<uint64_t>(rows));
    costs.multiplier[rows] = middle / costs.one_row_seconds;
    costs.uncertainty = std::max(costs.uncertainty, (interval.high - interval.low) / 2 / middle);
  }
  return costs;
}

}  // namespace paceline::measure
