#include "measure/bench.h"

#include <gtest/gtest.h>

#include "measure/cycle.h"

namespace paceline::measure {
namespace {

TEST(BreakEven, FollowsFromTheCostOfARound) {
  PassCosts passes;
  passes.multiplier.fill(1);
  passes.multiplier[5] = 1.5;
  EXPECT_DOUBLE_EQ(break_even_tokens(passes, 0.1, 4), 1.9);
  // 1 + a + a^2 + a^3 + a^4 = 1.9375 at a = 1/2.
  EXPECT_NEAR(*break_even_acceptance(1.9375, 4), 0.5, 1e-9);
  EXPECT_NEAR(*break_even_acceptance(1.25, 1), 0.25, 1e-9);
  EXPECT_FALSE(break_even_acceptance(3.1, 2).has_value());
}

TEST(EndsInCycle, SeesATailThatRepeats) {
  std::vector<TokenId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(i);
  EXPECT_FALSE(ends_in_cycle(ids));
  for (int i = 0; i < 24; ++i) ids.push_back(100 + i % 3);  // 24 of 44 tokens
  EXPECT_TRUE(ends_in_cycle(ids));
  for (int i = 0; i < 20; ++i) ids.push_back(200 + i);  // and gets out of it again
  EXPECT_FALSE(ends_in_cycle(ids));
  EXPECT_FALSE(ends_in_cycle(std::vector<TokenId>{1, 1, 1, 1}));  // too short to tell
}

}  // namespace
}  // namespace paceline::measure
