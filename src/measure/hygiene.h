// Whether a bench can be believed: was the machine quiet, are the intervals narrow, and did the
// arms do different things at all?
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure/bench.h"
#include "measure/machine.h"

namespace paceline::measure {

struct NoiseLimits {
  double half_width = 0.05;  // of an interval, as a share of what it surrounds
  double load = 0.5;         // runnable tasks before the run, for each CPU
  double steal = 0.02;       // share of the time that the host took
  double others = 0.1;       // CPUs that others kept busy, for each CPU
  double change = 1.2;       // of a pass of some rows over one row: high over low
};

// Why the machine is no place to measure now, or was none: a clause each, "the load was 3.10 on 2
// CPUs"; empty where nothing speaks against it.
std::vector<std::string> noise_of_machine(const MachineUse& use, int cpus,
                                          const NoiseLimits& limits = {});
// The same of the numbers themselves: intervals that are too wide, and passes whose costs changed.
// Of speedups these are those over the prompts that were run; how prompts differ is no noise.
std::vector<std::string> noise_of_result(const BenchResult& result, const NoiseLimits& limits = {});

// Pairs of arms (indices) of which every count is the same, so that comparing them shows nothing:
// rounds, drafts verified and drafts accepted at every depth. An arm that never drafted is alike
// the plain one.
std::vector<std::pair<int, int>> arms_alike(const std::vector<ArmSummary>& arms);

}  // namespace paceline::measure
