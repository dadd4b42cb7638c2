#include "measure/hygiene.h"

#include <fmt/core.h>

#include <algorithm>

namespace paceline::measure {
namespace {

// Counts by depth without the zeros at the end: how far an arm was allowed to go is not what it
// did.
std::vector<int64_t> trimmed(std::vector<int64_t> counts) {
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  return counts;
}

bool alike(const ArmSummary& a, const ArmSummary& b) {
  return a.counts.rounds == b.counts.rounds && a.counts.drafted == b.counts.drafted &&
         trimmed(a.counts.drafted_by_depth) == trimmed(b.counts.drafted_by_depth) &&
         trimmed(a.counts.accepted_by_depth) == trimmed(b.counts.accepted_by_depth);
}

}  // namespace

std::vector<std::string> noise_of_machine(const MachineUse& use, int cpus,
                                          const NoiseLimits& limits) {
  std::vector<std::string> reasons;
  const char* unit = cpus == 1 ? "CPU" : "CPUs";
  if (use.load_before > limits.load * cpus)
    reasons.push_back(
        fmt::format("the load before it was {:.2f} on {} {}", use.load_before, cpus, unit));
  if (use.steal > limits.steal)
    reasons.push_back(fmt::format("the host took {:.1f} % of the time", 100 * use.steal));
  if (use.others > limits.others * cpus)
    reasons.push_back(
        fmt::format("other processes kept {:.2f} of {} {} busy", use.others, cpus, unit));
  return reasons;
}

std::vector<std::string> noise_of_result(const BenchResult& result, const NoiseLimits& limits) {
  std::vector<std::string> reasons;
  const auto wide = [&](double half, const std::string& what) {
    if (half > limits.half_width)
      reasons.push_back(fmt::format("the interval of {} is ±{:.1f} % wide", what, 100 * half));
  };
  wide(result.passes.uncertainty / 2, "pass costs");  // single passes: shorter, so twice as wide
  if (const auto& seen = result.watched;
      seen && seen->looks >= Watched::kEnough && seen->high > limits.change * seen->low)
    reasons.push_back(
        fmt::format("a pass of {} rows cost from {:.2f} to {:.2f} of one row: the machine changed",
                    Watched::kRows, seen->low, seen->high));
  if (result.plain_spread) wide(*result.plain_spread, "plain tokens/s");
  for (const ArmSummary& arm : result.arms) {
    if (arm.shape.depth == 0 || !arm.speedup.interval) continue;
    std::string name =
        arm.shape.depth == kAutoDepth ? std::string("auto") : fmt::format("{}", arm.shape.depth);
    if (arm.shape.tree != kAutoTree) name += fmt::format(":{}", arm.shape.tree);
    wide(half_width(*arm.speedup.interval, arm.speedup.value), "the speedup at depth " + name);
  }
  return reasons;
}

std::vector<std::pair<int, int>> arms_alike(const std::vector<ArmSummary>& arms) {
  std::vector<std::pair<int, int>> pairs;
  for (size_t a = 0; a < arms.size(); ++a)
    for (size_t b = a + 1; b < arms.size(); ++b)
      if (alike(arms[a], arms[b])) pairs.emplace_back(static_cast<int>(a), static_cast<int>(b));
  return pairs;
}

}  // namespace paceline::measure
