#include "spec/policy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace paceline {
namespace {

CostModel linear_costs(double slope, double draft = 0) {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m) costs.verify[m] = 1 + slope * (m - 1);
  costs.draft = draft;
  return costs;
}

// Chains as lookup makes them: evidence grows along the drafts.
std::vector<Draft> chain(int n, int match = 1, DraftSource source = DraftSource::Lookup) {
  std::vector<Draft> drafts;
  for (int i = 0; i < n; ++i) {
    const int level = std::min(match + i, kEvidenceLevels - 1);
    drafts.push_back({.token = 1, .source = source, .evidence = static_cast<uint8_t>(level)});
  }
  return drafts;
}

struct Outcome {
  int64_t rows = 0;
  int64_t tokens = 0;
  double cost = 0;
};

// Rounds until `tokens` are out; each draft stands with chance `chance`.
Outcome play(DepthPolicy& policy, const CostModel& costs, const std::vector<Draft>& offered,
             double chance, int tokens, std::mt19937& random) {
  Outcome sum;
  std::bernoulli_distribution stands(chance);
  while (sum.tokens < tokens) {
    const int n = policy.choose(offered, costs);
    int accepted = 0;
    while (accepted < n && stands(random)) ++accepted;
    policy.record(std::span(offered).first(n), accepted);
    sum.rows += n + 1;
    sum.tokens += accepted + 1;
    sum.cost += costs.verify[n + 1] + n * costs.draft;
  }
  return sum;
}

TEST(DepthPolicy, DraftsThatNeverStandAreSwitchedOff) {
  for (const double slope : {0.02, 0.05, 0.1, 0.3, 1.0}) {
    for (const auto source : {DraftSource::Lookup, DraftSource::Scripted}) {
      DepthPolicy policy;
      std::mt19937 random(1);
      const auto drafts = chain(8, 1, source);
      const auto costs = linear_costs(slope);
      play(policy, costs, drafts, 0.0, 50, random);  // the warm-up: 50 rounds
      const Outcome after = play(policy, costs, drafts, 0.0, 1000, random);
      EXPECT_LT(static_cast<double>(after.rows) / static_cast<double>(after.tokens), 1.2)
          << "slope " << slope;
      EXPECT_LT(after.cost, 1.02 * static_cast<double>(after.tokens)) << "slope " << slope;
      EXPECT_GT(after.rows, after.tokens) << "tried again now and then";
    }
  }
}

TEST(DepthPolicy, AGoodDrafterIsUsedToItsDepth) {
  DepthPolicy policy;
  std::mt19937 random(2);
  const auto drafts = chain(8);
  const auto costs = linear_costs(0.05);
  play(policy, costs, drafts, 0.9, 200, random);
  const Outcome after = play(policy, costs, drafts, 0.9, 2000, random);
  const double tokens_a_cost = static_cast<double>(after.tokens) / after.cost;
  // Always 8 drafts would give (1 - 0.9^9) / (1 - 0.9) = 6.13 tokens for 1.40.
  EXPECT_GT(tokens_a_cost, 0.97 * 6.13 / 1.40);
}

TEST(DepthPolicy, ComesBackWhenTheTextTurns) {
  DepthPolicy policy;
  std::mt19937 random(3);
  const auto drafts = chain(8);
  const auto costs = linear_costs(0.2);
  play(policy, costs, drafts, 0.0, 500, random);
  EXPECT_EQ(policy.choose(drafts, costs), 0);
  play(policy, costs, drafts, 1.0, 500, random);
  EXPECT_GE(policy.choose(drafts, costs), 7);
}

TEST(DepthPolicy, WeighsTheCostOfRowsAndDrafts) {
  DepthPolicy policy;
  const auto drafts = chain(4, 3);
  EXPECT_EQ(policy.choose(drafts, linear_costs(1.0)), 0);  // a row costs a pass: nothing to gain
  EXPECT_EQ(policy.choose(drafts, linear_costs(0.0)), 4);  // rows for nothing
  EXPECT_EQ(policy.choose(drafts, linear_costs(0.0, /*draft=*/1.0)), 0);
  EXPECT_EQ(policy.choose({}, linear_costs(0.0)), 0);
}

TEST(DepthPolicy, ALevelIsJudgedByItself) {
  DepthPolicy policy;
  const auto weak = chain(1, 1);
  const auto strong = chain(1, 12);
  for (int i = 0; i < 100; ++i) {
    policy.record(weak, 0);
    policy.record(strong, 1);
  }
  EXPECT_LT(policy.chance(weak[0]), 0.02);
  EXPECT_GT(policy.chance(strong[0]), 0.95);
  EXPECT_EQ(policy.choose(weak, linear_costs(0.1)), 0);
  EXPECT_EQ(policy.choose(strong, linear_costs(0.1)), 1);
}

TEST(DepthPolicy, NothingIsLearntBehindTheDraftThatFell) {
  DepthPolicy policy;
  const auto drafts = chain(3, 1);
  const double before = policy.chance(drafts[2]);
  policy.record(drafts, 1);
  EXPECT_GT(policy.chance(drafts[0]), DepthPolicy().chance(drafts[0]));
  EXPECT_LT(policy.chance(drafts[1]), DepthPolicy().chance(drafts[1]));
  EXPECT_EQ(policy.chance(drafts[2]), before);
}

}  // namespace
}  // namespace paceline
