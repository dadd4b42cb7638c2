#include "spec/cost_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace paceline {
namespace {

// A machine on which m rows take one_row (1 + slope x(m)) seconds, give or take some.
struct Machine {
  double one_row = 2e-3;
  double slope = 1;
  double noise = 0.03;
};

CostModel measured() {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m)
    costs.verify[m] = 1 + 0.06 * (m - 1) + 0.002 * m * (m - 1);
  costs.draft = 0.001;
  costs.head = 0.05;
  return costs;
}

void run(CostTracker& tracker, const Machine& machine, int passes, int fewest, int most, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_int_distribution<int> rows(fewest, most);
  std::normal_distribution<double> noise(1, machine.noise);
  const CostModel at_start = measured();
  for (int i = 0; i < passes; ++i) {
    const int m = rows(random);
    const double x = at_start.verify[m] - 1;
    tracker.observe(m, machine.one_row * (1 + machine.slope * x) * noise(random));
  }
}

double change(const CostTracker& tracker, int m) {
  return (tracker.costs().verify[m] - 1) / (measured().verify[m] - 1);
}

TEST(CostTracker, BeginsWithWhatWasMeasured) {
  const CostTracker tracker(measured());
  EXPECT_EQ(tracker.costs().verify, measured().verify);
}

TEST(CostTracker, KeepsACurveThatHolds) {
  CostTracker tracker(measured());
  for (int seed = 0; seed < 20; ++seed) {
    run(tracker, {}, 50, 1, 8, seed);
    EXPECT_NEAR(change(tracker, 4), 1, 0.12) << seed;
  }
  EXPECT_EQ(tracker.costs().verify[1], 1);
  EXPECT_EQ(tracker.costs().head, measured().head);
  EXPECT_EQ(tracker.costs().draft, measured().draft);
}

TEST(CostTracker, FollowsAMachineThatChanges) {
  CostTracker tracker(measured());
  for (const double slope : {1.0, 2.0, 0.6, 1.5}) {
    run(tracker, {.slope = slope}, 400, 1, 8, 1);
    EXPECT_NEAR(change(tracker, 4), slope, 0.15 * slope);
    EXPECT_NEAR(change(tracker, 32), slope, 0.15 * slope) << "widths that did not run follow too";
  }
  // Slower alike for all widths changes nothing.
  const double before = change(tracker, 4);
  run(tracker, {.one_row = 5e-3, .slope = 1.5}, 400, 1, 8, 2);
  EXPECT_NEAR(change(tracker, 4), before, 0.15 * before);
}

TEST(CostTracker, LearnsNothingOfOtherWidthsFromOne) {
  for (const int width : {1, 5}) {
    CostTracker tracker(measured());
    run(tracker, {.one_row = 7e-3, .slope = 3}, 1000, width, width, 3);
    EXPECT_NEAR(change(tracker, 4), 1, 0.02) << width;
  }
}

TEST(CostTracker, ADisturbedPassMovesLittle) {
  CostTracker tracker(measured());
  run(tracker, {}, 200, 1, 8, 4);
  const double before = change(tracker, 4);
  tracker.observe(8, 1.0);  // five hundred times as long
  tracker.observe(1, 0.0);
  EXPECT_NEAR(change(tracker, 4), before, 0.15);
}

// A time slice lost, or a clock that stood still, in any of the passes that there is nothing to
// hold against yet, of a wide pass or of a narrow one.
TEST(CostTracker, ADisturbedPassAtTheStartIsSoonForgotten) {
  for (const int at : {0, 1, 5, 9, 10, 11}) {
    for (const int rows : {1, 8, 32}) {
      for (const double seconds : {0.0, 1e-4, 15e-3, 1.0}) {
        CostTracker tracker(measured());
        run(tracker, {}, at, 4, 6, 6);
        tracker.observe(rows, seconds);
        run(tracker, {}, 20, 4, 6, 7);
        EXPECT_NEAR(change(tracker, 4), 1, 0.6) << rows << " rows in " << seconds << " at " << at;
        run(tracker, {}, 200, 1, 8, 8);
        EXPECT_NEAR(change(tracker, 4), 1, 0.2) << rows << " rows in " << seconds << " at " << at;
      }
    }
  }
}

// Whatever came before, ordinary passes bring the ordinary curve back.
TEST(CostTracker, RecoversFromAnyPasses) {
  for (int seed = 0; seed < 20; ++seed) {
    CostTracker tracker(measured());
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_int_distribution<int> rows(1, CostModel::kMaxRows);
    std::uniform_real_distribution<double> exponent(-4, -1);
    for (int i = 0; i < 50; ++i) tracker.observe(rows(random), std::pow(10, exponent(random)));
    run(tracker, {}, 3000, 1, 8, seed);
    EXPECT_NEAR(change(tracker, 4), 1, 0.15) << seed;
  }
}

TEST(CostTracker, StaysSoundWhateverTheClockShows) {
  CostTracker tracker(measured());
  std::mt19937 random(5);
  std::uniform_int_distribution<int> rows(1, CostModel::kMaxRows);
  std::uniform_real_distribution<double> exponent(-12, 2);
  for (int i = 0; i < 3000; ++i) {
    tracker.observe(rows(random), i % 7 == 0 ? 0 : std::pow(10, exponent(random)));
    const auto& verify = tracker.costs().verify;
    for (int m = 2; m <= CostModel::kMaxRows; ++m) ASSERT_GE(verify[m], verify[m - 1]) << i;
    ASSERT_LE(verify[CostModel::kMaxRows], 1 + 4 * (measured().verify[CostModel::kMaxRows] - 1));
  }
}

}  // namespace
}  // namespace paceline
