#include "measure/statistics.h"

#include <algorithm>
#include <cstddef>
#include <random>

#include "base/check.h"

namespace paceline::measure {

double median(std::vector<double> values) {
  check(!values.empty(), "a median is of at least one value");
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval median_interval(const std::vector<double>& values, uint64_t seed) {
  constexpr int kResamples = 2000;
  std::mt19937_64 random(seed);
  std::vector<double> medians;
  std::vector<double> sample(values.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : sample) value = values[random() % values.size()];
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kResamples * 25 / 1000], medians[kResamples * 975 / 1000 - 1]};
}

}  // namespace paceline::measure
