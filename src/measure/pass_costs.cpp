#include "measure/pass_costs.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "engine/costs.h"
#include "measure/statistics.h"

namespace paceline::measure {

double PassCosts::of(int rows) const {
  check(rows >= 1, "a pass has rows");
  if (rows <= kMostRows) return multiplier[rows];
  constexpr int kFrom = (kMostRows + 1) / 2;
  const double slope = (multiplier[kMostRows] - multiplier[kFrom]) / (kMostRows - kFrom);
  return multiplier[kMostRows] + std::max(slope, 0.0) * (rows - kMostRows);
}

Result<PassCosts> measure_passes(const Engine& engine, int repeats,
                                 const std::function<bool()>& stop) {
  constexpr int kRows = PassCosts::kMostRows;
  if (engine.context() <= kRows) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  }
  std::array<int, kRows - 1> widths;
  std::iota(widths.begin(), widths.end(), 2);
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  constexpr double kSeconds = 60;  // for a big model few sweeps must do
  const auto times = time_passes(engine.model(), engine.context(), engine.cache_type(),
                                 {.widths = widths,
                                  .fewest = widths.size(),
                                  .most = repeats,
                                  .seconds = kSeconds,
                                  .prefill_seconds = kNoLimit,
                                  .stop = stop});
  if (!times) return times.error();

  PassCosts costs;
  costs.position = times->position;
  costs.one_row_seconds = median(times->one_row_seconds);
  costs.multiplier[1] = 1;
  for (int rows = 2; rows <= kRows; ++rows) {
    const auto& ratios = times->ratios[rows - 2];
    const double middle = median(ratios);
    const Interval interval = median_interval(ratios, static_cast<uint64_t>(rows));
    costs.multiplier[rows] = middle;
    costs.uncertainty = std::max(costs.uncertainty, (interval.high - interval.low) / 2 / middle);
  }
  return costs;
}

}  // namespace paceline::measure
