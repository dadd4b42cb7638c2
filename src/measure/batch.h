// Tokens a second of several sequences that decode together.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "measure/estimate.h"

namespace paceline::measure {

struct BatchOptions {
  std::vector<int> sizes;  // sequences side by side, each at least 1
  int repeats = 3;         // runs of every size, sizes interleaved there and back
  uint64_t seed = 1;       // of the bootstrap
  std::function<void(std::string_view what, double share)> progress = {};
  std::function<bool()> stop;  // looked at between steps
};

struct BatchSummary {
  int sequences = 0;
  int64_t tokens = 0;                // emitted by rounds, all runs
  double tokens_per_second = 0;      // of all sequences together: smooth median over runs
  std::optional<Interval> interval;  // of other runs, as Estimate has it; none of one run
};

struct BatchResult {
  std::vector<BatchSummary> sizes;  // in the order asked for
  bool identical = true;            // every sequence wrote what it writes alone
};

// Timing window: the steps in which all sequences of the batch run rounds; the prompts are read
// before. Sequence i takes request i, from the front again when there are fewer. Every request
// should give the same number of tokens (ignore_eos). Interrupted when nothing was measured.
Result<BatchResult> run_batches(const Engine& engine, const std::vector<Request>& requests,
                                const BatchOptions& options);

}  // namespace paceline::measure
