#include "apps/bench_floors.h"

#include <gtest/gtest.h>

namespace paceline::apps {
namespace {

using measure::Interval;

// A bench of one category and one arm with this speedup, of 18 tokens in 10 rounds.
measure::BenchResult bench_with(double speedup, std::optional<Interval> interval) {
  measure::ArmSummary arm;
  arm.shape.depth = 4;
  arm.pairs = 6;
  arm.speedup.value = speedup;
  arm.speedup.interval = interval;
  arm.speedup.interval_prompts = Interval{0.1, 10};  // says nothing about these prompts
  arm.counts.rounds = 10;
  arm.counts.round_tokens = 18;
  measure::BenchResult result;
  result.by_category["code"] = {arm};
  return result;
}

HeldFloor held(const char* measure, double floor, const measure::BenchResult& result) {
  const auto floors = hold_floors({{{measure, {{"*", floor}}}}}, result);
  EXPECT_EQ(floors.size(), 1u);
  return floors.at(0);
}

TEST(BenchFloors, FailBeyondTheNoiseOfTheRepeatsOnly) {
  EXPECT_TRUE(held("speedup", 0.98, bench_with(1.02, Interval{0.9, 1.1})).reached());
  const HeldFloor within = held("speedup", 0.98, bench_with(0.95, Interval{0.91, 0.99}));
  EXPECT_FALSE(within.reached());
  EXPECT_TRUE(within.holds());
  EXPECT_FALSE(held("speedup", 0.98, bench_with(0.95, Interval{0.93, 0.97})).holds());
}

TEST(BenchFloors, OfASingleRepeatAreHeldAgainstTheValue) {
  EXPECT_FALSE(held("speedup", 0.98, bench_with(0.97, std::nullopt)).holds());
  EXPECT_TRUE(held("speedup", 0.98, bench_with(0.98, std::nullopt)).holds());
}

TEST(BenchFloors, OfCountsHaveNoNoise) {
  const auto result = bench_with(1.5, Interval{1, 2});
  EXPECT_TRUE(held("tokens_per_round", 1.8, result).holds());
  EXPECT_FALSE(held("tokens_per_round", 1.81, result).holds());
}

}  // namespace
}  // namespace paceline::apps
