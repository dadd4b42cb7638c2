#include "measure/promotion.h"

#include <gtest/gtest.h>

#include <random>

namespace paceline::measure {
namespace {

struct Heads {
  std::vector<PromptRounds> before, after;

  // `n` prompts of 100 tokens; rounds under both heads, each off by up to `noise` at random.
  void add(const std::string& category, int n, int rounds_before, int rounds_after, int noise,
           uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < n; ++i) {
      const std::string id = category + std::to_string(i);
      const auto off = [&] {
        return noise == 0 ? 0 : static_cast<int>(random() % (2 * noise + 1)) - noise;
      };
      before.push_back({id, category, rounds_before + off(), 100});
      after.push_back({id, category, rounds_after + off(), 100});
    }
  }
  Promotion compare(uint64_t seed = 1) const {
    const auto result = compare_heads(before, after, seed);
    EXPECT_TRUE(result);
    return result ? *result : Promotion{};
  }
};

TEST(Promotion, AHeadThatTakesFewerRoundsEverywhereIsPromoted) {
  Heads heads;
  heads.add("chat", 10, 50, 40, 3);
  heads.add("code", 10, 40, 32, 3);
  const Promotion result = heads.compare();
  EXPECT_TRUE(result.promote) << result.reason;
  EXPECT_NEAR(result.all.before, 2000.0 / 900, 0.05);
  EXPECT_NEAR(result.all.after, 2000.0 / 720, 0.05);
  EXPECT_GT(result.all.change.low, 0.3);
  EXPECT_LT(result.all.change.high, 0.8);
  ASSERT_EQ(result.categories.size(), 2u);
  EXPECT_EQ(result.categories[0].category, "chat");
  EXPECT_EQ(result.categories[0].prompts, 10);
  EXPECT_NE(result.reason.find("rises from 2."), std::string::npos) << result.reason;
}

TEST(Promotion, ACategoryThatFallsStopsItHoweverTheMeanRises) {
  Heads heads;
  heads.add("chat", 30, 50, 30, 3);
  heads.add("code", 10, 30, 36, 3);
  const Promotion result = heads.compare();
  EXPECT_GT(result.all.change.low, 0);
  EXPECT_FALSE(result.promote);
  EXPECT_NE(result.reason.find("code falls from 3."), std::string::npos) << result.reason;
}

TEST(Promotion, AFallWithinChanceDoesNot) {
  Heads heads;
  heads.add("chat", 30, 50, 40, 3);
  heads.add("code", 4, 40, 41, 20, 9);
  const Promotion result = heads.compare();
  EXPECT_LT(result.categories[1].change.low, 0);
  EXPECT_GT(result.categories[1].change.high, 0);
  EXPECT_TRUE(result.promote) << result.reason;
}

TEST(Promotion, NoRiseBeyondChanceIsNoRise) {
  Heads heads;
  heads.add("chat", 20, 40, 40, 8);
  EXPECT_FALSE(heads.compare().promote);
  Heads same;
  same.add("chat", 20, 40, 40, 0);
  const Promotion result = same.compare();
  EXPECT_FALSE(result.promote);
  EXPECT_EQ(result.all.change.low, 0);
  EXPECT_EQ(result.all.change.high, 0);
}

TEST(Promotion, FewPromptsPromoteNoneHoweverFarTheyRise) {
  for (const int n : {1, 2, 5}) {
    Heads heads;
    heads.add("chat", n, 50, 25, 0);
    const Promotion result = heads.compare();
    EXPECT_FALSE(result.promote) << n;
    EXPECT_EQ(result.reason,
              std::to_string(n) +
                  " prompts are too few to tell a rise from chance, 6 are needed, from 2.000 to "
                  "4.000 tokens per round, the change in [2.000, 2.000]");
    // Those without rounds do not help.
    heads.add("empty", 6, 0, 0, 0);
    EXPECT_FALSE(heads.compare().promote) << n;
  }
  Heads six;
  six.add("chat", 6, 50, 25, 0);
  EXPECT_TRUE(six.compare().promote);
}

// Prompts differ much, a head's gain on each of them little: only pairs show it.
TEST(Promotion, PairsSeeAGainThatPromptsWouldHide) {
  Heads heads;
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) {
    const auto rounds = static_cast<int64_t>(30 + random() % 60);
    heads.before.push_back({std::to_string(i), "", rounds + 1, 100});
    heads.after.push_back({std::to_string(i), "", rounds, 100});
  }
  EXPECT_TRUE(heads.compare().promote);
}

// Two heads that are alike, 100 times: chance must not reject or promote often.
TEST(Promotion, ChanceDecidesRarely) {
  int promoted = 0;
  int fallen = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Heads heads;
    for (int category = 0; category < 4; ++category)
      heads.add(std::string(1, static_cast<char>('a' + category)), 12, 40, 40, 10,
                seed * 10 + static_cast<uint64_t>(category));
    const Promotion result = heads.compare(seed);
    promoted += result.promote ? 1 : 0;
    fallen += result.reason.find("falls") != std::string::npos ? 1 : 0;
  }
  // 2.5 % of 100 each are expected; intervals of 12 prompts are a little narrow.
  EXPECT_LE(promoted, 9);
  EXPECT_LE(fallen, 12);
}

TEST(Promotion, RepeatsWithItsSeed) {
  Heads heads;
  heads.add("chat", 12, 50, 45, 9);
  EXPECT_EQ(heads.compare(7).all.change.low, heads.compare(7).all.change.low);
  EXPECT_EQ(heads.compare(7).reason, heads.compare(7).reason);
}

TEST(Promotion, OtherPromptsAreNoComparison) {
  Heads heads;
  heads.add("chat", 3, 50, 45, 0);
  EXPECT_FALSE(compare_heads(std::span(heads.before).first(2), heads.after, 1));
  std::swap(heads.after[0], heads.after[1]);
  EXPECT_FALSE(compare_heads(heads.before, heads.after, 1));
  EXPECT_FALSE(compare_heads({}, {}, 1));
  for (PromptRounds& prompt : heads.before) prompt.rounds = 0;
  std::swap(heads.after[0], heads.after[1]);
  EXPECT_FALSE(compare_heads(heads.before, heads.after, 1));
}

}  // namespace
}  // namespace paceline::measure
