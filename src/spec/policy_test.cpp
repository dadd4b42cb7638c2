#include "spec/policy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/draft_lists.h"

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

// What a round would verify of what the drafter could offer.
int verified_of(DepthPolicy& policy, std::span<const Draft> offered, const CostModel& costs) {
  const int asked = policy.ask(static_cast<int>(offered.size()), costs);
  return policy.choose(offered.first(asked), costs);
}

struct Outcome {
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t asked = 0;
  double cost = 0;
};

// Rounds until `tokens` are out; each draft stands with chance `chance`.
Outcome play(DepthPolicy& policy, const CostModel& costs, const std::vector<Draft>& offered,
             double chance, int tokens, std::mt19937& random) {
  Outcome sum;
  std::bernoulli_distribution stands(chance);
  while (sum.tokens < tokens) {
    const int asked = policy.ask(static_cast<int>(offered.size()), costs);
    const int n = policy.choose(std::span(offered).first(asked), costs);
    int accepted = 0;
    while (accepted < n && stands(random)) ++accepted;
    record_chain(policy, std::span(offered).first(n), accepted);
    sum.rows += n + 1;
    sum.asked += asked;
    sum.tokens += accepted + 1;
    sum.cost += costs.verify[n + 1] + asked * costs.draft;
  }
  return sum;
}

TEST(DepthPolicy, DraftsThatNeverStandAreSwitchedOff) {
  for (const double slope : {0.02, 0.05, 0.1, 0.3, 0.9}) {
    for (const double draft : {0.0, 0.02, 0.1}) {
      for (const auto source : {DraftSource::Lookup, DraftSource::Scripted}) {
        DepthPolicy policy;
        std::mt19937 random(1);
        const auto drafts = chain(8, 1, source);
        const auto costs = linear_costs(slope, draft);
        play(policy, costs, drafts, 0.0, 50, random);  // the warm-up: 50 rounds
        const Outcome after = play(policy, costs, drafts, 0.0, 1000, random);
        const auto tokens = static_cast<double>(after.tokens);
        EXPECT_LT(static_cast<double>(after.rows) / tokens, 1.2) << slope << " " << draft;
        EXPECT_LT(after.cost, 1.02 * tokens) << slope << " " << draft;
        // A row that costs nearly a pass, and a draft on top, could not pay if they all stood.
        const bool could_pay = slope + draft < 0.99;
        EXPECT_EQ(after.rows > after.tokens, could_pay) << slope << " " << draft;
      }
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
  for (const double draft : {0.0, 0.1}) {
    DepthPolicy policy;
    std::mt19937 random(3);
    const auto drafts = chain(8);
    const auto costs = linear_costs(0.2, draft);
    play(policy, costs, drafts, 0.0, 500, random);
    const Outcome off = play(policy, costs, drafts, 0.0, 100, random);
    EXPECT_LT(off.rows, 115);
    play(policy, costs, drafts, 1.0, 500, random);
    EXPECT_GE(verified_of(policy, drafts, costs), 7);
  }
}

TEST(DepthPolicy, WeighsTheCostOfRowsAndDrafts) {
  const auto drafts = chain(4, 3);
  const auto first_choice = [&](const CostModel& costs) {
    DepthPolicy policy;
    return verified_of(policy, drafts, costs);
  };
  EXPECT_EQ(first_choice(linear_costs(1.0)), 0);  // a row costs a pass: nothing to gain
  EXPECT_EQ(first_choice(linear_costs(0.0)), 4);  // rows for nothing
  EXPECT_EQ(first_choice(linear_costs(0.0, /*draft=*/1.0)), 0);
  DepthPolicy policy;
  EXPECT_EQ(policy.choose({}, linear_costs(0.0)), 0);
}

TEST(DepthPolicy, AsksForNoMoreThanPays) {
  DepthPolicy policy;
  std::mt19937 random(4);
  const auto drafts = chain(8, 0, DraftSource::Scripted);
  const auto dear = linear_costs(0.05, /*draft=*/0.3);
  play(policy, dear, drafts, 0.5, 300, random);
  const Outcome after = play(policy, dear, drafts, 0.5, 1000, random);
  // One draft gives 1.5 tokens for 1.35, two 1.75 for 1.7.
  const double asked_a_round = static_cast<double>(after.asked) /
                               static_cast<double>(after.tokens - (after.rows - after.tokens));
  EXPECT_LT(asked_a_round, 2.5);
  // What is almost free is asked for whole: more evidence is more to choose from.
  EXPECT_EQ(policy.ask(8, linear_costs(0.5, /*draft=*/1e-4)), 8);
}

TEST(DepthPolicy, DraftsThatAreThereAreSunkCost) {
  // The draft is paid for; a row for it costs next to nothing.
  DepthPolicy policy;
  const auto costs = linear_costs(0.01, /*draft=*/0.2);
  const auto drafts = chain(4, 0, DraftSource::Scripted);
  const int asked = policy.ask(4, costs);
  ASSERT_GE(asked, 1);
  EXPECT_EQ(policy.choose(std::span(drafts).first(asked), costs), asked);
}

TEST(DepthPolicy, ALevelIsJudgedByItself) {
  DepthPolicy policy;
  const auto weak = chain(1, 1);
  const auto strong = chain(1, 12);
  for (int i = 0; i < 100; ++i) {
    for (const bool good : {false, true}) {
      policy.ask(1, linear_costs(0));
      policy.choose(good ? strong : weak, linear_costs(0));
      record_chain(policy, good ? strong : weak, good ? 1 : 0);
    }
  }
  EXPECT_LT(policy.chance(weak[0], 1), 0.03);
  EXPECT_GT(policy.chance(strong[0], 1), 0.97);
  EXPECT_EQ(verified_of(policy, weak, linear_costs(0.1)), 0);
  EXPECT_EQ(verified_of(policy, strong, linear_costs(0.1)), 1);
}

TEST(DepthPolicy, NothingIsLearntBehindTheDraftThatFell) {
  DepthPolicy policy;
  const auto drafts = chain(3, 1);
  const double before = policy.chance(drafts[2], 3);
  record_chain(policy, drafts, 1);
  EXPECT_GT(policy.chance(drafts[0], 1), DepthPolicy().chance(drafts[0], 1));
  EXPECT_LT(policy.chance(drafts[1], 2), DepthPolicy().chance(drafts[1], 2));
  EXPECT_EQ(policy.chance(drafts[2], 3), before);
}

// A head that asks before each draft; what its drafts are worth is learnt as a union learns it.
Outcome play_head(DepthPolicy& policy, const CostModel& costs, double chance, int tokens,
                  std::mt19937& random) {
  Outcome sum;
  Acceptance worth(0.5);
  std::bernoulli_distribution stands(chance);
  while (sum.tokens < tokens) {
    std::vector<Draft> drafts;
    const int limit = 8;
    policy.begin_growth(limit, limit, costs);
    while (static_cast<int>(drafts.size()) < limit &&
           policy.pays({.drafts = drafts,
                        .place = static_cast<int>(drafts.size()) - 1,
                        .with = worth.chance(static_cast<int>(drafts.size()) + 1),
                        .steps = 1}))
      drafts.push_back({.token = 1, .source = DraftSource::Mtp, .evidence = 8});
    const int n = policy.choose(drafts, costs);
    int accepted = 0;
    while (accepted < n && stands(random)) ++accepted;
    for (int i = 0; i < std::min(n, accepted + 1); ++i) worth.add(i + 1, i < accepted ? 1 : 0);
    record_chain(policy, std::span(drafts).first(n), accepted);
    sum.rows += n + 1;
    sum.asked += static_cast<int64_t>(drafts.size());
    sum.tokens += accepted + 1;
    sum.cost += costs.verify[n + 1] + static_cast<double>(drafts.size()) * costs.head;
  }
  return sum;
}

CostModel head_costs(double slope, double head) {
  CostModel costs = linear_costs(slope);
  costs.head = head;
  return costs;
}

TEST(DepthPolicy, PaysForDraftsThatStandAndForNoneThatNeverDo) {
  for (const double slope : {0.02, 0.05, 0.2}) {
    for (const double head : {0.02, 0.05, 0.2}) {
      const auto costs = head_costs(slope, head);
      std::mt19937 random(5);
      DepthPolicy bad;
      play_head(bad, costs, 0.0, 50, random);
      const Outcome nothing = play_head(bad, costs, 0.0, 1000, random);
      EXPECT_LT(nothing.cost, 1.02 * static_cast<double>(nothing.tokens)) << slope << " " << head;
      DepthPolicy good;
      play_head(good, costs, 0.9, 200, random);
      const Outcome much = play_head(good, costs, 0.9, 3000, random);
      // The best fixed number of drafts.
      double best = 1;
      double tokens = 1;
      double joint = 1;
      for (int n = 1; n <= 8; ++n) {
        tokens += joint *= 0.9;
        best = std::max(best, tokens / (costs.verify[n + 1] + n * head));
      }
      EXPECT_GT(static_cast<double>(much.tokens) / much.cost, 0.95 * best) << slope << " " << head;
    }
  }
}

TEST(DepthPolicy, WeighsAnOfferByItsChainItsPriceAndWhatThereIsForNothing) {
  const std::vector<Draft> sure(3, {.token = 1, .source = DraftSource::Lookup, .evidence = 15});
  const std::vector<Draft> doubtful(3, {.token = 1, .source = DraftSource::Lookup, .evidence = 1});
  const auto pays = [](const CostModel& costs, const Offer& offer) {
    DepthPolicy policy;
    policy.begin_growth(8, 8, costs);
    return policy.pays(offer);
  };
  const auto costs = head_costs(0.05, 0.05);
  EXPECT_TRUE(pays(costs, {.drafts = sure, .place = 2, .without = 0.3, .with = 0.7, .steps = 1}));
  EXPECT_FALSE(
      pays(costs, {.drafts = doubtful, .place = 2, .without = 0.3, .with = 0.7, .steps = 1}))
      << "the chain before it seldom stands";
  EXPECT_FALSE(pays(costs, {.drafts = sure, .place = 2, .without = 0.68, .with = 0.7, .steps = 1}))
      << "little more than there is for nothing";
  EXPECT_FALSE(pays(head_costs(0.05, 0.5),
                    {.drafts = sure, .place = 2, .without = 0.3, .with = 0.7, .steps = 1}));
  EXPECT_FALSE(pays(costs, {.drafts = sure, .place = 2, .without = 0.3, .with = 0.7, .steps = 12}))
      << "a chain that the head has not read is paid for too";
}

TEST(Acceptance, ADepthLeansOnAllUntilItHasSeenEnough) {
  Acceptance acceptance(0.5);
  for (int i = 0; i < 50; ++i) acceptance.add(1, 1);
  EXPECT_GT(acceptance.chance(1), 0.95);
  EXPECT_GT(acceptance.chance(2), 0.9) << "nothing of its own yet";
  for (int i = 0; i < 50; ++i) {
    acceptance.add(1, 1);
    acceptance.add(2, 0);
  }
  EXPECT_GT(acceptance.chance(1), 0.8);
  EXPECT_LT(acceptance.chance(2), 0.25);
}

}  // namespace
}  // namespace paceline
