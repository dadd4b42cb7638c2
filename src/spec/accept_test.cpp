#include "spec/accept.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/draft_lists.h"
#include "tests/plain_argmax.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(AcceptGreedy, StopsAtTheFirstDisagreement) {
  const Accepted got = accept_greedy(chain_of({7, 4, 5}), Tokens{7, 4, 9, 2});
  EXPECT_EQ(got.n_drafts, 2);  // 7 and 4 stand; 5 is not 9
  EXPECT_EQ(got.next, 9);      // the trunk's correction
}

TEST(AcceptGreedy, GivesTheBonusWhenAllStand) {
  const Accepted got = accept_greedy(chain_of({7, 4, 9}), Tokens{7, 4, 9, 2});
  EXPECT_EQ(got.n_drafts, 3);
  EXPECT_EQ(got.next, 2);
}

TEST(AcceptGreedy, ADraftThatFitsBehindOneThatFellDoesNotCount) {
  const Accepted got = accept_greedy(chain_of({8, 4}), Tokens{7, 4, 9});
  EXPECT_EQ(got.n_drafts, 0);
  EXPECT_EQ(got.next, 7);
}

TEST(AcceptGreedy, WithoutDraftsTheTrunkSpeaksAlone) {
  const Accepted got = accept_greedy({}, Tokens{3});
  EXPECT_EQ(got.n_drafts, 0);
  EXPECT_EQ(got.next, 3);
}

TEST(AcceptGreedy, WalksDownTheTreeToTheDraftThatIsChosen) {
  //        7        8          children of the pending token
  //      4   5      4          of 7, and of 8
  //            9               of 5
  const auto tree = tree_of({{7, -1}, {8, -1}, {4, 0}, {5, 0}, {4, 1}, {9, 3}});
  const auto path = [&](const Tokens& choices) {
    const Accepted got = accept_greedy(tree, choices);
    Tokens rows(got.standing().begin(), got.standing().end());
    rows.push_back(got.next);
    return rows;
  };
  // Choices behind the pending token, then behind each draft; -2: nobody may look.
  EXPECT_EQ(path({7, 5, -2, -2, 9, -2, 1}), (Tokens{0, 3, 5, 1}));
  EXPECT_EQ(path({7, 4, -2, 3, -2, -2, -2}), (Tokens{0, 2, 3}));
  EXPECT_EQ(path({8, -2, 4, -2, -2, 6, -2}), (Tokens{1, 4, 6})) << "each branch has its own 4";
  EXPECT_EQ(path({7, 9, -2, -2, -2, -2, -2}), (Tokens{0, 9})) << "9 stands elsewhere";
  EXPECT_EQ(path({4, -2, -2, -2, -2, -2, -2}), (Tokens{4}));
}

TEST(AcceptGreedy, GivesOnAnyTreeThePathThatIsFoundByHand) {
  std::mt19937 random(5);
  for (int run = 0; run < 2000; ++run) {
    const int n = static_cast<int>(random() % (kMostNodes + 1));
    std::vector<Node> nodes;
    std::vector<int> depths;
    for (int i = 0; i < n; ++i) {
      int parent = static_cast<int>(random() % (i + 1)) - 1;
      if (parent >= 0 && depths[parent] == kMostDrafts) parent = -1;
      TokenId token = 0;  // the lowest that no sibling has
      for (int j = 0; j < i; ++j) token += nodes[j].parent == parent ? 1 : 0;
      nodes.push_back({token, parent});
      depths.push_back(parent < 0 ? 1 : depths[parent] + 1);
    }
    Tokens choices;
    for (int row = 0; row <= n; ++row) choices.push_back(static_cast<TokenId>(random() % 3));
    const auto tree = tree_of(nodes);
    const Accepted got = accept_greedy(tree, choices);
    int at = -1;
    std::vector<int> wanted;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int i = 0; i < n && !goes_on; ++i) {
        if (nodes[i].parent != at || nodes[i].token != choices[at + 1]) continue;
        wanted.push_back(at = i);
        goes_on = true;
      }
    }
    ASSERT_EQ(std::vector<int>(got.standing().begin(), got.standing().end()), wanted);
    ASSERT_EQ(got.next, choices[at + 1]);
    for (int i = 0; i < n; ++i) ASSERT_EQ(depth_of(tree, i), depths[i]);
  }
}

// Rows of four logits.
Result<Accepted> accept_rows(const Tokens& drafts, std::vector<float> logits) {
  GreedyRule rule(plain_argmax);
  return rule.accept(chain_of(drafts),
                     Mat<float>(logits.data(), static_cast<int>(logits.size()) / 4, 4), 100);
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

TEST(GreedyRule, InATreeRowsOffThePathMayBeFaultyAndAFaultOnItIsLeftToTheNextRound) {
  GreedyRule rule(plain_argmax);
  const auto tree = tree_of({{2, -1}, {3, -1}, {1, 1}});
  std::vector<float> logits = {0,    0,    0,    1,     // 3
                               kNan, kNan, kNan, kNan,  // behind 2
                               0,    1,    0,    0,     // behind 3: 1
                               kNan, kNan, kNan, kNan};
  const auto got = rule.accept(tree, Mat<float>(logits.data(), 4, 4), 100);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->n_drafts, 1);
  EXPECT_EQ(got->path[0], 1);
  EXPECT_EQ(got->next, 1);
}

}  // namespace
}  // namespace paceline
