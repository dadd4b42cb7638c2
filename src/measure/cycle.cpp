#include "measure/cycle.h"

#include <algorithm>

namespace paceline::measure {

int cycle_start(std::span<const TokenId> ids) {
  const int size = static_cast<int>(ids.size());
  int start = size;
  for (int period = 1; period <= kLongestCycle; ++period) {
    int matched = 0;
    while (matched + period < size && ids[size - 1 - matched] == ids[size - 1 - matched - period]) {
      ++matched;
    }
    if (matched >= 2 * period) start = std::min(start, size - matched - period);
  }
  return start;
}

bool ends_in_cycle(std::span<const TokenId> ids) {
  constexpr int kShortestAnswer = 16;
  const int size = static_cast<int>(ids.size());
  return size >= kShortestAnswer && 2 * (size - cycle_start(ids)) >= size;
}

}  // namespace paceline::measure
