#include "measure/over_position.h"

#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

// The prefill's token, then tokens of the depths given.
std::vector<EmittedToken> emitted(std::initializer_list<int> depths) {
  std::vector<EmittedToken> tokens(1);
  for (const int depth : depths) tokens.push_back({.depth = depth});
  return tokens;
}

TEST(OverPosition, ARoundIsItsDraftsAndATokenOfTheTrunk) {
  std::vector<PositionBin> bins;
  add_rounds(emitted({0, 1, 0, 1, 2, 3, 0, 0}), bins);  // rounds of 1, 2, 4 and 1 tokens
  ASSERT_EQ(bins.size(), 1u);
  EXPECT_EQ(bins[0].rounds, 4);
  EXPECT_EQ(bins[0].tokens, 8);
}

TEST(OverPosition, AnAnswerMayEndWithADraft) {
  std::vector<PositionBin> bins;
  add_rounds(emitted({1, 2, 1}), bins);  // no token of the trunk behind either round
  EXPECT_EQ(bins[0].rounds, 2);
  EXPECT_EQ(bins[0].tokens, 3);
}

TEST(OverPosition, ARoundBelongsWhereItBegins) {
  std::vector<EmittedToken> tokens(31);  // positions 1 to 30 are rounds of one token
  for (const int depth : {1, 2, 0, 0}) tokens.push_back({.depth = depth});
  std::vector<PositionBin> bins;
  add_rounds(tokens, bins);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[0].rounds, 31);  // the last of them goes from 31 to 33
  EXPECT_EQ(bins[0].tokens, 33);
  EXPECT_EQ(bins[1].rounds, 1);
  EXPECT_EQ(bins[1].tokens, 1);
  add_rounds(emitted({}), bins);  // an answer of one token has no round
  EXPECT_EQ(bins[0].rounds, 31);
}

}  // namespace
}  // namespace paceline::measure
