#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace paceline {
namespace {

using Entry = std::pair<TokenId, double>;

TEST(LogProbabilities, EqualLogitsStandById) {
  const std::array logits = {0.0f, 1.0f, 0.0f, 1.0f};
  const TokenLogprob got = log_probabilities(logits, 1, 3);
  const double log_sum = std::log(2 + 2 * std::exp(1.0));
  EXPECT_EQ(got.id, 1);
  EXPECT_NEAR(got.logprob, 1 - log_sum, 1e-6);
  ASSERT_EQ(got.top.size(), 3u);
  EXPECT_EQ(got.top[0], Entry(1, got.logprob));
  EXPECT_EQ(got.top[1], Entry(3, got.logprob));
  EXPECT_EQ(got.top[2].first, 0);
  EXPECT_NEAR(got.top[2].second, -log_sum, 1e-6);
}

// In float both logits below the top would become -19, and the greater id would stand first.
TEST(LogProbabilities, LogitsThatDifferStayApart) {
  const float above_one = 1 + 0x1p-23f;
  const std::array logits = {1.0f, above_one, 20.0f};
  const TokenLogprob got = log_probabilities(logits, 2, 3);
  ASSERT_EQ(got.top.size(), 3u);
  EXPECT_EQ(got.top[0], Entry(2, 0.0));  // the sum of exponentials rounds to exp(20)
  EXPECT_EQ(got.top[1], Entry(1, -19 + 0x1p-23));
  EXPECT_EQ(got.top[2], Entry(0, -19.0));
}

}  // namespace
}  // namespace paceline
