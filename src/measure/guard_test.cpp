#include "measure/guard.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::measure {
namespace {

TracePoint row(int position, float first, float second) {
  TracePoint point;
  point.position = position;
  point.top = {{3, first}, {5, second}};
  return point;
}

// Ten positions whose gap of 1 moves by 0.25 in one of them and stays in the others.
std::vector<TracePoint> reference() {
  std::vector<TracePoint> points;
  for (int i = 0; i < 10; ++i) points.push_back(row(i, 2, 1));
  return points;
}
std::vector<TracePoint> candidate() {
  auto points = reference();
  points[4] = row(4, 2.25f, 1);
  return points;
}

TEST(Guard, WeighsThresholds) {
  // Rounds with the gaps {0.1, 3}, {0.5}, {2, 4}, {6}.
  const std::vector<RowGap> gaps = {{0, 3}, {0, 0.1f}, {1, 0.5f}, {2, 2}, {2, 4}, {3, 6}};
  const auto guard =
      weigh_guard(gaps, reference(), candidate(), {.thresholds = {1, 0.2f}, .exact_cost = 1.25});
  ASSERT_TRUE(guard);
  ASSERT_EQ(guard->rows.size(), 2u);
  EXPECT_FLOAT_EQ(guard->rows[0].threshold, 0.2f);
  EXPECT_DOUBLE_EQ(guard->rows[0].coverage, 0.9);
  EXPECT_DOUBLE_EQ(guard->rows[0].ambiguous, 0.25);
  EXPECT_DOUBLE_EQ(guard->rows[0].cost, (1 + 0.25 * 1.25) / 1.25);
  EXPECT_DOUBLE_EQ(guard->rows[0].break_even, 1 / 0.75);
  EXPECT_DOUBLE_EQ(guard->rows[1].coverage, 1);
  EXPECT_DOUBLE_EQ(guard->rows[1].ambiguous, 0.5);
  EXPECT_EQ(guard->rounds, 4);
  EXPECT_FLOAT_EQ(guard->largest, 0.25f);
  // A threshold of 0.25 covers all that was seen; one round in four has a gap below it.
  EXPECT_DOUBLE_EQ(guard->break_even, 1 / 0.75);
}

TEST(Guard, SaysWhenTheSampleIsThin) {
  // Ten positions cannot rule out three in ten.
  const std::vector<RowGap> few = {{0, 3}, {1, 3}, {2, 3}};
  EXPECT_FALSE(weigh_guard(few, reference(), candidate(), {})->thin());
  const std::vector<RowGap> more = {{0, 3}, {1, 3}, {2, 3}, {3, 3}};
  const auto guard = weigh_guard(more, reference(), candidate(), {});
  EXPECT_TRUE(guard->thin());
  EXPECT_DOUBLE_EQ(guard->unseen_rate, 0.3);
}

TEST(Guard, NeverPaysWhereEveryRoundIsAmbiguous) {
  const std::vector<RowGap> gaps = {{0, 0.1f}, {1, 0.2f}};
  const auto guard = weigh_guard(gaps, reference(), candidate(), {.thresholds = {1}});
  EXPECT_TRUE(std::isinf(guard->rows[0].break_even));
  EXPECT_GT(guard->rows[0].cost, 1);
}

TEST(Guard, RefusesWhatSaysNothing) {
  EXPECT_FALSE(weigh_guard({}, reference(), candidate(), {}));
  const std::vector<RowGap> gaps = {{0, 1}};
  EXPECT_FALSE(weigh_guard(gaps, reference(), {row(0, 2, 1)}, {}));
  auto other = reference();
  for (TracePoint& point : other) point.top = {{7, 2}, {8, 1}};
  EXPECT_FALSE(weigh_guard(gaps, reference(), other, {}));
}

}  // namespace
}  // namespace paceline::measure
