// What a tree costs beside a chain of as many rows.
//
//   tree_cost MODEL [PAIRS] [POSITION] [THREADS]
//
// Inside the timing: one pass with logits of all rows, and the commit of two of them; in a tree the
// second is one that has to be moved. Trees have three children a row. Trees and chains take turns
// behind the same number of positions, POSITION to begin with; which comes first
// alternates. Medians, and that of the ratios of pairs with its interval of 95 %.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/table.h"
#include "measure/statistics.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kKept = 2;

struct Arm {
  std::unique_ptr<SequenceState> state;
  Block block{kMostTreeRows};
  std::vector<int> path;
};

void fill_chain(Arm& arm, int rows) {
  arm.path.clear();
  for (int row = 0; row < rows; ++row) {
    arm.block.add(row + 1);
    if (row < kKept) arm.path.push_back(row);
  }
}

void fill_tree(Arm& arm, int rows) {
  for (int row = 0; row < rows; ++row) arm.block.add(row + 1, row == 0 ? -1 : (row - 1) / 3);
  arm.path.clear();
  for (int row = rows - 1; row >= 0; row = arm.block.parents()[row])
    arm.path.insert(arm.path.begin(), row);
  arm.path.resize(kKept);
}

double seconds_of_round(const Model& model, Workspace& workspace, Arm& arm, int rows, bool tree) {
  arm.block.reset(arm.state->length());
  if (tree)
    fill_tree(arm, rows);
  else
    fill_chain(arm, rows);
  const auto start = Clock::now();
  model.forward(arm.block, *arm.state, LogitRows::All, workspace);
  arm.state->commit(arm.path);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int run(const std::string& file, int pairs, int position, int threads) {
  const auto engine = Engine::open(file, {.threads = threads, .use_head = false});
  if (!engine) {
    fmt::print(stderr, "{}\n", engine.error().message);
    return 1;
  }
  const Model& model = engine->model();
  fmt::print("rows  chain ms  tree ms  tree / chain\n");
  for (const int rows : {2, 4, 9, 16, 32}) {
    auto workspace = *model.make_workspace(kMostTreeRows, kMostTreeRows);
    Arm arms[2];
    for (Arm& arm : arms) {
      arm.state =
          *model.make_state(position + kKept * (pairs + 5) + kMostTreeRows, engine->cache_type());
      while (arm.state->length() < position) {
        arm.block.reset(arm.state->length());
        fill_chain(arm, std::min(kMostTreeRows, position - arm.state->length()));
        model.forward(arm.block, *arm.state, LogitRows::None, *workspace);
        arm.state->commit(arm.block.rows());
      }
    }
    std::vector<double> seconds[2];
    std::vector<double> ratios;
    for (int pair = -5; pair < pairs; ++pair) {
      double spent[2];
      for (const bool second : {false, true}) {
        const bool tree = (pair % 2 == 0) != second;
        spent[tree] = seconds_of_round(model, *workspace, arms[tree], rows, tree);
      }
      if (pair < 0) continue;  // warming up
      for (const bool tree : {false, true}) seconds[tree].push_back(spent[tree]);
      ratios.push_back(spent[1] / spent[0]);
    }
    const auto interval = measure::median_interval(ratios, static_cast<uint64_t>(rows));
    fmt::print("{:4}  {:8.2f}  {:7.2f}  {:.3f} [{:.3f}, {:.3f}]\n", rows,
               1e3 * measure::median(seconds[0]), 1e3 * measure::median(seconds[1]),
               measure::median(ratios), interval.low, interval.high);
  }
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    fmt::print(stderr, "usage: tree_cost MODEL [PAIRS] [POSITION] [THREADS]\n");
    return 2;
  }
  return paceline::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 60,
                       argc > 3 ? std::atoi(argv[3]) : 256, argc > 4 ? std::atoi(argv[4]) : 0);
}
