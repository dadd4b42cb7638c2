#include "measure/statistics.h"

#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 10}), 3);
  EXPECT_EQ(median({7}), 7);
}

TEST(MedianInterval, HoldsTheMedianAndRepeats) {
  std::vector<double> values;
  for (int i = 0; i < 101; ++i) values.push_back(i);
  const Interval interval = median_interval(values, 1);
  EXPECT_LT(interval.low, 50);
  EXPECT_GT(interval.high, 50);
  // The order statistics that bound the median of 101 values at 95 % are ranks 41 and 61.
  EXPECT_NEAR(interval.low, 40, 3);
  EXPECT_NEAR(interval.high, 60, 3);
  EXPECT_EQ(median_interval(values, 1).low, interval.low);
}

TEST(MedianInterval, OfOneValueHasNoWidth) {
  const Interval interval = median_interval({1.5}, 1);
  EXPECT_EQ(interval.low, 1.5);
  EXPECT_EQ(interval.high, 1.5);
}

// Harrell and Davis: the weight of value i of n is the chance that the median of a resample is that
// value, were resamples infinitely fine. Of three values 7, 13 and 7 of 27 resamples have it.
TEST(SmoothMedian, WeighsValuesByHowOftenTheyAreTheMedianOfAResample) {
  EXPECT_EQ(smooth_median_weights(1), std::vector<double>{1});
  const auto two = smooth_median_weights(2);
  EXPECT_NEAR(two[0], 0.5, 1e-12);
  EXPECT_NEAR(two[1], 0.5, 1e-12);
  const auto three = smooth_median_weights(3);
  EXPECT_NEAR(three[0], 7.0 / 27, 1e-12);
  EXPECT_NEAR(three[1], 13.0 / 27, 1e-12);
  EXPECT_NEAR(three[2], 7.0 / 27, 1e-12);
}

TEST(SmoothMedian, WeightsAreEvenAndSumToOneForAThousandValues) {
  for (const size_t n : {10u, 72u, 1000u}) {
    const auto weights = smooth_median_weights(n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += weights[i];
      EXPECT_NEAR(weights[i], weights[n - 1 - i], 1e-10) << n;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_LT(weights[0], 0.01);
  }
}

TEST(StudentLimit, IsThatOfTheTables) {
  EXPECT_NEAR(student_limit(1), 12.706, 1e-3);
  EXPECT_NEAR(student_limit(2), 4.303, 1e-3);
  EXPECT_NEAR(student_limit(7), 2.365, 1e-3);
  EXPECT_NEAR(student_limit(30), 2.042, 1e-3);
  EXPECT_NEAR(student_limit(1e6), 1.960, 1e-3);
  EXPECT_GT(student_limit(2.5), student_limit(3));
}

}  // namespace
}  // namespace paceline::measure
