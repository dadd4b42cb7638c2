// How decided a text is: counts of the gaps between the two largest logits.
#pragma once

#include <array>
#include <cstdint>

namespace paceline::measure {

struct GapHistogram {
  static constexpr float kWidth = 0.5f;
  static constexpr int kBins = 41;  // [0, 0.5), [0.5, 1), ... and all from 20 on

  std::array<int64_t, kBins> counts = {};

  // A gap of 0 or more, infinity among them.
  void add(float gap) {
    const float bin = gap / kWidth;
    ++counts[bin < kBins - 1 ? static_cast<size_t>(bin) : kBins - 1];
  }
};

}  // namespace paceline::measure
