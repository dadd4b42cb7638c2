// Everything that a run needs to go on as if it had not been interrupted, on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/history.h"
#include "train/loss.h"

namespace paceline::train {

struct RunState {
  // What must be the same for a run to be continued: one line a setting, "tap after".
  std::vector<std::string> settings;
  int64_t step = 0;
  int64_t optimiser_steps = 0;
  int64_t positions = 0;
  int64_t skipped = 0;
  double seconds = 0;
  int flat = 0;                    // evaluations since the best one
  int not_finite = 0;              // steps in a row
  bool evaluation_is_due = false;  // it was interrupted
  std::vector<double> distance;    // see TrainReport
  std::vector<LossSums> sums;      // since the last evaluation, a depth each
  double loss_steps = 0;           // whose losses they hold
  bool has_average = false;
  std::vector<HistoryEntry> history;
  std::vector<float>
      values;  // masters, m, v, the average where there is one; then the best masters
};

// Writes `file`; what stood there becomes FILE.before.
Result<void> write_run_state(const std::filesystem::path& file, const RunState& state);

// Reads `file`, or FILE.before where that is cut short, damaged or not there; *used says which.
// NotFound where neither is whole.
Result<RunState> read_run_state(const std::filesystem::path& file, std::filesystem::path* used);

// The first setting in which the two differ: "tap: after where the run had before". Empty: none.
std::string setting_that_differs(const RunState& state, std::span<const std::string> settings);

}  // namespace paceline::train
