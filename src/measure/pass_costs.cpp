#include "measure/pass_costs.h"

#include <algorithm>
#include <vector>

#include "measure/passes.h"
#include "measure/statistics.h"

namespace paceline::measure {

Result<PassCosts> measure_passes(const Engine& engine, int position, int repeats,
                                 const std::function<bool()>& stop) {
  constexpr int kRows = PassCosts::kMostRows;
  auto passes = Passes::make(engine, position, kRows);
  if (!passes) return passes.error();
  PassCosts costs;
  costs.position = passes->position();

  std::array<std::vector<double>, kRows + 1> seconds;
  for (int repeat = -1; repeat < repeats && !(stop && stop()); ++repeat) {
    for (int turn = 0; turn < kRows; ++turn) {
      const int rows = repeat % 2 == 0 ? turn + 1 : kRows - turn;  // there and back again
      const double spent = passes->seconds(rows);
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
