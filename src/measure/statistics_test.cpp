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

}  // namespace
}  // namespace paceline::measure
