// Medians and their intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::measure {

// Of at least one value; of an even number the mean of the two in the middle.
double median(std::vector<double> values);

struct Interval {
  double low = 0;
  double high = 0;
};

// Where the median of such values lies with 95 % confidence: percentile bootstrap (Efron 1979) of
// 2,000 resamples, drawn from the seed. A single value gives an interval of no width.
Interval median_interval(const std::vector<double>& values, uint64_t seed);

}  // namespace paceline::measure
