// What a trunk pass of m rows costs, measured side by side with passes of one row.
#pragma once

#include <array>
#include <functional>

#include "base/result.h"
#include "engine/engine.h"

namespace paceline::measure {

struct PassCosts {
  static constexpr int kMostRows = kMaxDepth + 1;
  int position = 0;  // committed positions in front of the block
  double one_row_seconds = 0;
  // r(m) for m from 1 to kMostRows: median seconds of m rows over those of one row right beside.
  std::array<double, kMostRows + 1> multiplier = {};
  // r(m) of any width: behind kMostRows on the straight line of the last half of them.
  double of(int rows) const;
  // Largest half-width of the 95 % intervals of the medians, as a share of the median.
  double uncertainty = 0;
};

// Blocks of 1 .. kMostRows rows behind 256 committed ones (fewer when the context is smaller), each
// `repeats` times or for about a minute, as engine/costs.h says. stop: looked at between passes;
// then what is there is returned, or Interrupted.
Result<PassCosts> measure_passes(const Engine& engine, int repeats,
                                 const std::function<bool()>& stop);

}  // namespace paceline::measure
