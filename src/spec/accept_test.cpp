#include "spec/accept.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/plain_argmax.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(AcceptGreedy, StopsAtTheFirstDisagreement) {
  const Accepted got = accept_greedy(Tokens{7, 4, 5}, Tokens{7, 4, 9, 2});
  EXPECT_EQ(got.n_drafts, 2);  // 7 and 4 stand; 5 is not 9
  EXPECT_EQ(got.next, 9);      // the trunk's correction
}

TEST(AcceptGreedy, GivesTheBonusWhenAllStand) {
  const Accepted got = accept_greedy(Tokens{7, 4, 9}, Tokens{7, 4, 9, 2});
  EXPECT_EQ(got.n_drafts, 3);
  EXPECT_EQ(got.next, 2);
}

TEST(AcceptGreedy, ADraftThatFitsBehindOneThatFellDoesNotCount) {
  const Accepted got = accept_greedy(Tokens{8, 4}, Tokens{7, 4, 9});
  EXPECT_EQ(got.n_drafts, 0);
  EXPECT_EQ(got.next, 7);
}

TEST(AcceptGreedy, WithoutDraftsTheTrunkSpeaksAlone) {
  const Accepted got = accept_greedy({}, Tokens{3});
  EXPECT_EQ(got.n_drafts, 0);
  EXPECT_EQ(got.next, 3);
}

// Rows of four logits.
Result<Accepted> accept_rows(const Tokens& drafts, std::vector<float> logits) {
  GreedyRule rule(plain_argmax);
  return rule.accept(drafts, Mat<float>(logits.data(), static_cast<int>(logits.size()) / 4, 4),
                     100);
}

TEST(GreedyRule, TiesGoToTheLowestIdZeroesOfEitherSignToo) {
  auto got = accept_rows({1}, {0, 5, 5, 1,  //
                               -1, -0.0f, 0.0f, -0.0f});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->n_drafts, 1);
  EXPECT_EQ(got->next, 1);
  got = accept_rows({2}, {0, 5, 5, 1,  //
                          9, 0, 0, 0});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->n_drafts, 0);  // 2 is as likely as 1 but not the lowest
  EXPECT_EQ(got->next, 1);
}

TEST(GreedyRule, TheFirstRowMustHaveAFiniteMaximum) {
  const auto got = accept_rows({3}, {kNan, kNan, kNan, kNan,  //
                                     0, 0, 0, 1});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("position 100"), std::string::npos) << got.error().message;
  EXPECT_FALSE(accept_rows({}, {0, kInf, 0, 0}));
  EXPECT_FALSE(accept_rows({}, {-kInf, -kInf, -kInf, -kInf}));
}

TEST(GreedyRule, AFaultBehindDraftsThatStandIsLeftToTheNextRound) {
  const auto got = accept_rows({3, 1}, {0, 0, 0, 1,  //
                                        0, 1, 0, 0,  //
                                        kNan, kNan, kNan, kNan});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->n_drafts, 1);  // 3 stands; 1 is the trunk's token behind it
  EXPECT_EQ(got->next, 1);
}

TEST(GreedyRule, FaultsInVoidRowsAreNone) {
  const auto got = accept_rows({3}, {0, 0, 2, 1,  //
                                     kNan, kNan, kNan, kNan});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->n_drafts, 0);
  EXPECT_EQ(got->next, 2);
}

}  // namespace
}  // namespace paceline
