#include "measure/hygiene.h"

#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

ArmSummary arm(int depth, int64_t rounds, std::vector<int64_t> drafted,
               std::vector<int64_t> accepted) {
  ArmSummary made;
  made.shape.depth = depth;
  made.counts.rounds = rounds;
  made.counts.drafted_by_depth = std::move(drafted);
  made.counts.accepted_by_depth = std::move(accepted);
  return made;
}

TEST(Noise, AQuietMachineHasNone) {
  EXPECT_TRUE(noise_of_machine({.load_before = 0.9, .steal = 0.01, .others = 0.15}, 2).empty());
}

TEST(Noise, EveryLimitHasItsSentence) {
  const auto reasons =
      noise_of_machine({.load_before = 1.2, .steal = 0.031, .others = 0.25}, /*cpus=*/2);
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_EQ(reasons[0], "the load before it was 1.20 on 2 CPUs");
  EXPECT_EQ(reasons[1], "the host took 3.1 % of the time");
  EXPECT_EQ(reasons[2], "other processes kept 0.25 of 2 CPUs busy");
}

TEST(Noise, AWideIntervalIsNamed) {
  BenchResult result;
  result.arms = {arm(0, 10, {}, {}), arm(4, 5, {5}, {5})};
  result.arms[1].pairs = 8;
  result.arms[1].speedup.value = 2;
  result.arms[1].speedup.interval_prompts = {1, 4};  // how the prompts differ
  EXPECT_TRUE(noise_of_result(result).empty());
  result.arms[1].speedup.interval = {1.92, 2.08};  // 4 %
  EXPECT_TRUE(noise_of_result(result).empty());
  result.arms[1].speedup.interval = {1.8, 2.2};
  ASSERT_EQ(noise_of_result(result).size(), 1u);
  EXPECT_EQ(noise_of_result(result)[0], "the interval of the speedup at depth 4 is ±10.0 % wide");
  result.arms[1].shape.tree = 15;
  EXPECT_EQ(noise_of_result(result)[0],
            "the interval of the speedup at depth 4:15 is ±10.0 % wide");
}

TEST(ArmsAlike, AnArmThatNeverDraftedIsThePlainOne) {
  const std::vector<ArmSummary> arms = {
      arm(0, 100, {}, {}), arm(4, 100, {0, 0, 0, 0}, {0, 0, 0, 0}), arm(8, 60, {50, 10}, {30, 10})};
  const auto alike = arms_alike(arms);
  ASSERT_EQ(alike.size(), 1u);
  EXPECT_EQ(alike[0], std::pair(0, 1));
}

TEST(ArmsAlike, DeeperArmsThatNeverWentDeeperAreNamed) {
  const std::vector<ArmSummary> arms = {arm(0, 100, {}, {}), arm(2, 60, {50, 10}, {30, 10}),
                                        arm(8, 60, {50, 10, 0, 0}, {30, 10, 0, 0}),
                                        arm(16, 60, {50, 11}, {30, 10})};
  const auto alike = arms_alike(arms);
  ASSERT_EQ(alike.size(), 1u);
  EXPECT_EQ(alike[0], std::pair(1, 2));
}

TEST(ArmsAlike, TreesOfOtherSizesAreNot) {
  std::vector<ArmSummary> arms = {arm(4, 60, {50, 10}, {30, 10}), arm(4, 60, {50, 10}, {30, 10})};
  arms[0].counts.drafted = 90;
  arms[1].counts.drafted = 140;
  EXPECT_TRUE(arms_alike(arms).empty());
  arms[1].counts.drafted = 90;
  EXPECT_EQ(arms_alike(arms).size(), 1u);
}

}  // namespace
}  // namespace paceline::measure
