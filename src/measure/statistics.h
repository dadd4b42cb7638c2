// Medians and their intervals, and what intervals of few values need.
#pragma once

#include <cstddef>
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

// Weights of n ordered values whose sum is their smooth median (Harrell and Davis 1982): what the
// medians of resamples average to. It repeats better than the median, which is one value or two:
// of values that lie far apart it does not jump from one to its neighbour. Two values: their mean.
std::vector<double> smooth_median_weights(size_t n);

// The value that Student's t with so many degrees of freedom, at least 1 and not always whole,
// exceeds in magnitude in 5 % of all cases: 12.71 with 1, 1.96 without end.
double student_limit(double freedom);

}  // namespace paceline::measure
