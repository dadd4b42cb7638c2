// The price of exactness: what passes cost whose rows do not depend on how many there are, against
// passes of the same model with products that are dispatched by their number of rows
// (Kernels::wide), in one process and in turns.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "measure/statistics.h"

namespace paceline::measure {

struct PriceAtWidth {
  int rows = 0;
  double ratio = 1;  // exact over wide: median over pairs of passes right behind each other
  Interval interval;
  double exact_seconds = 0;  // medians
  double wide_seconds = 0;
};

struct Price {
  static constexpr int kMostRows = 8;
  int position = 0;  // committed positions in front of the block
  int pairs = 0;     // at every width
  std::vector<PriceAtWidth> widths;
};

// Inside the timing: the pass, logits of all rows. Interrupted when stopped before the first round
// of pairs is complete.
Result<Price> measure_price(const Engine& engine, int position, int pairs,
                            const std::function<void(double share)>& progress,
                            const std::function<bool()>& stop);

}  // namespace paceline::measure
