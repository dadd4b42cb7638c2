// Argmax by a plain loop, so that tests of the round need no kernels.
#pragma once

#include <cmath>
#include <span>

namespace paceline {

inline int plain_argmax(std::span<const float> row) {
  int best = -1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) continue;
    if (best < 0 || row[i] > row[best]) best = static_cast<int>(i);
  }
  return best >= 0 && std::isfinite(row[best]) ? best : -1;
}

}  // namespace paceline
