#include "spec/union.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "io/test_files.h"
#include "spec/store_builder.h"
#include "tests/draft_lists.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

TEST(OwnText, MatchesBehindAnyDraftsTheLongestSuffixThatEndsInTheText) {
  std::mt19937 random(7);
  for (int run = 0; run < 3000; ++run) {
    const int alphabet = 1 + run % 4;
    Tokens text(1 + random() % 40);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % alphabet);
    OwnText own;
    own.begin(text, static_cast<int>(text.size()));
    OwnText::Place place = own.end();
    Tokens whole = text;
    const int n_text = static_cast<int>(text.size());
    for (int drafts = 0;; ++drafts) {
      const int n = static_cast<int>(whole.size());
      int longest = 0;
      for (int end = 0; end < std::min(n_text, n - 1); ++end) {
        int length = 0;
        while (length <= end && whole[end - length] == whole[n - 1 - length]) ++length;
        longest = std::max(longest, length);
      }
      ASSERT_GE(place.match_length(), longest) << "run " << run << ", drafts " << drafts;
      // One that is longer ran on into the drafts; it is a real one all the same.
      bool real = place.match_length() == 0;
      for (int end = n - 2; end >= 0 && !real; --end) {
        int length = 0;
        while (length <= end && whole[end - length] == whole[n - 1 - length]) ++length;
        real = length >= place.match_length() && own.next(place) == whole[end + 1];
      }
      ASSERT_TRUE(real) << "run " << run << ", drafts " << drafts;
      if (drafts == 8) break;
      const bool follow = place.match_length() > 0 && random() % 2 == 0;
      whole.push_back(follow ? own.next(place) : static_cast<TokenId>(random() % alphabet));
      place = own.behind(place, whole.back());
      EXPECT_EQ(place.drafts().size(), whole.size() - text.size());
    }
  }
}

// Says 1000 more than the token before, as sure as it is told, and notes what it was asked.
class StubHead : public TokenDrafter {
 public:
  struct Log {
    int starts = 0;
    std::vector<Tokens> chains;
    Tokens observed;
  };
  StubHead(Log& log, uint8_t evidence) : log_(&log), evidence_(evidence) {}
  void begin(std::span<const TokenId> prompt, int /*capacity*/) override { last_ = prompt.back(); }
  void observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) override {
    log_->observed.insert(log_->observed.end(), tokens.begin(), tokens.end());
    last_ = tokens.back();
  }
  int draft(std::span<Draft> /*out*/) override { return 0; }
  void start() override { ++log_->starts; }
  int guess(std::span<const Draft> drafts, int place, std::span<Draft> out) override {
    Tokens path;
    for (int i = place; i != kPending; i = parent_of(drafts, i))
      path.insert(path.begin(), drafts[i].token);
    out[0] = {.token = (path.empty() ? last_ : path.back()) + 1000,
              .source = DraftSource::Mtp,
              .evidence = evidence_};
    log_->chains.push_back(std::move(path));
    return 1;
  }

 private:
  Log* log_;
  uint8_t evidence_;
  TokenId last_ = 0;
};

class NotingRule : public GrowthRule {
 public:
  explicit NotingRule(bool pays) : pays_(pays) {}
  bool pays(const Offer& offer) override {
    steps.push_back(offer.steps);
    EXPECT_GE(offer.with, offer.without);
    return pays_;
  }
  bool worth(double /*joint*/) const override { return true; }
  std::vector<int> steps;

 private:
  bool pays_;
};

std::shared_ptr<const NgramStore> store_of(const std::vector<Tokens>& answers) {
  const TemporaryFolder folder;
  StoreBuilder builder("", 10'000);
  for (const Tokens& answer : answers) builder.add(answer);
  EXPECT_TRUE(builder.save(folder.path() / "s"));
  return *NgramStore::open(folder.path() / "s");
}

struct Drafted {
  Tokens tokens;
  std::string sources;  // a letter each
};

Drafted drafted(UnionDrafter& drafter, int n, GrowthRule* rule = nullptr) {
  std::vector<Draft> out(n);
  out.resize(rule == nullptr ? drafter.draft(out)
                             : drafter.grow({.out = out, .depth = n, .chain = true}, *rule));
  Drafted got;
  for (const Draft& draft : out) {
    got.tokens.push_back(draft.token);
    got.sources += to_string(draft.source)[0];
  }
  return got;
}

// Often enough for the store to be sure.
std::vector<Tokens> often(const Tokens& answer) { return std::vector<Tokens>(60, answer); }

TEST(Union, EachTokenComesFromWhoeverIsLikeliest) {
  StubHead::Log log;
  UnionDrafter drafter({.store = store_of(often({2, 3, 4, 20, 21, 22})),
                        .head = std::make_unique<StubHead>(log, 3)});
  // The text has 3 behind 1 2, and 4 7 behind that; the store knows more of 2 3 and goes on with 4
  // 20 21 22. Behind that only the head has anything to say.
  drafter.begin(Tokens{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 7, 8, 9, 1, 2}, 100);
  const Drafted got = drafted(drafter, 4);
  EXPECT_EQ(got.tokens, (Tokens{3, 4, 20, 21}));
  EXPECT_EQ(got.sources, "lsss") << "of 4 both are sure, the store more so";
  drafter.observe(Tokens{3, 4, 20, 21}, {});
  EXPECT_EQ(log.observed, (Tokens{3, 4, 20, 21}));
  const Drafted next = drafted(drafter, 3);
  EXPECT_EQ(next.tokens, (Tokens{22, 1022, 2022}));
  EXPECT_EQ(next.sources, "smm");
}

TEST(Union, WithoutHeadOrStoreItIsTheOthers) {
  UnionDrafter alone({});
  alone.begin(Tokens{1, 2, 3, 1, 2}, 100);
  EXPECT_EQ(drafted(alone, 3).tokens, (Tokens{3, 1, 2}));
  alone.begin(Tokens{1, 2, 3}, 100);
  EXPECT_EQ(drafted(alone, 3).tokens, Tokens{}) << "nothing recurs";
  UnionDrafter stored({.store = store_of(often({3, 7, 8}))});
  stored.begin(Tokens{1, 2, 3}, 100);
  EXPECT_EQ(drafted(stored, 4).tokens, (Tokens{7, 8}));
}

TEST(Union, TheHeadReadsTheChainWhoeverDraftedIt) {
  StubHead::Log log;
  UnionDrafter drafter(
      {.store = store_of(often({3, 7})), .head = std::make_unique<StubHead>(log, 3)});
  drafter.begin(Tokens{1, 2, 3}, 100);
  NotingRule rule(true);
  const Drafted got = drafted(drafter, 3, &rule);
  EXPECT_EQ(got.tokens, (Tokens{7, 1007, 2007}));
  EXPECT_EQ(got.sources, "smm");
  EXPECT_EQ(log.starts, 1);
  // It is asked behind nothing as well, since the store is not sure of a context of one token.
  EXPECT_EQ(log.chains.back(), (Tokens{7, 1007}));
  int steps = 0;
  for (const int n : rule.steps) steps += n;
  EXPECT_EQ(steps, 3) << "a step for every token of the chain but the last, and one more";
}

TEST(Union, WhatTheRuleDoesNotPayForIsNotAsked) {
  StubHead::Log log;
  UnionDrafter drafter(
      {.store = store_of(often({3, 7})), .head = std::make_unique<StubHead>(log, 14)});
  drafter.begin(Tokens{1, 2, 3}, 100);
  NotingRule rule(false);
  EXPECT_EQ(drafted(drafter, 4, &rule).tokens, (Tokens{7})) << "what costs nothing is drafted";
  EXPECT_EQ(log.starts, 0);
  EXPECT_TRUE(log.chains.empty());
  EXPECT_EQ(rule.steps.back(), 2) << "the token before it, and its own";
}

TEST(Union, ASourceThatFailsLosesItsSay) {
  // The store is sure of 7 behind 3, and every time it is 4, as it was in the text.
  UnionDrafter drafter({.store = store_of(often({9, 2, 3, 7}))});
  drafter.begin(Tokens{9, 2, 3, 4}, 1000);
  Drafted got;
  int store_spoke = 0;
  for (int turn = 0; turn < 30; ++turn) {
    drafter.observe(Tokens{9, 2, 3}, {});
    got = drafted(drafter, 1);
    if (got.sources == "s") ++store_spoke;
    drafter.observe(Tokens{4}, {});
  }
  EXPECT_EQ(got.tokens, Tokens{4});
  EXPECT_EQ(got.sources, "l");
  EXPECT_LT(store_spoke, 10);
  // A new sequence begins as the first did.
  drafter.begin(Tokens{5, 9, 2, 3}, 1000);
  EXPECT_EQ(drafted(drafter, 1).tokens, Tokens{7});
}

// --- trees ---------------------------------------------------------------------------------------

std::vector<Draft> grown(UnionDrafter& drafter, int n, int depth, GrowthRule* rule = nullptr) {
  AlwaysPays always;
  std::vector<Draft> out(n);
  out.resize(drafter.grow({.out = out, .depth = depth}, rule == nullptr ? always : *rule));
  return out;
}

// Behind 3 the text had 4 once and 5 later; the store has 7 more often than 8.
TEST(Union, ATreeHasTheLikeliestGuessesOfAllSources) {
  std::vector<Tokens> answers = often({3, 7});
  for (int i = 0; i < 20; ++i) answers.push_back({3, 8});
  UnionDrafter drafter({.store = store_of(answers)});
  drafter.begin(Tokens{3, 4, 9, 3, 5, 9, 3}, 100);
  const auto tree = grown(drafter, 12, 1);
  std::map<TokenId, DraftSource> found;
  for (int i = 0; i < static_cast<int>(tree.size()); ++i) {
    EXPECT_EQ(parent_of(tree, i), kPending);
    EXPECT_TRUE(found.emplace(tree[i].token, tree[i].source).second) << "no token twice";
  }
  EXPECT_EQ(found, (std::map<TokenId, DraftSource>{{4, DraftSource::Lookup},
                                                   {5, DraftSource::Lookup},
                                                   {7, DraftSource::Store},
                                                   {8, DraftSource::Store}}));
  EXPECT_EQ(tree[0].token, 5) << "what followed two tokens of the text last is likeliest";
  for (const Draft& draft : tree)
    EXPECT_EQ(draft.second, draft.token == 4 || draft.token == 8) << draft.token;
}

TEST(Union, ATreeGrowsBestFirstWithinItsDepthAndAPrefixOfItIsATree) {
  StubHead::Log log;
  UnionDrafter drafter({.store = store_of(often({3, 7, 20, 21, 22, 23})),
                        .head = std::make_unique<StubHead>(log, 8)});
  const Tokens prompt = {3, 7, 1, 2, 3, 7, 20, 5, 6, 3, 7};
  for (int n = 0; n <= kMostNodes; ++n) {
    drafter.begin(prompt, 100);
    const auto tree = grown(drafter, n, 4);
    EXPECT_LE(static_cast<int>(tree.size()), n);
    for (int i = 0; i < static_cast<int>(tree.size()); ++i) {
      EXPECT_GE(parent_of(tree, i), kPending);
      EXPECT_LE(depth_of(tree, i), 4);
      for (int j = 0; j < i; ++j)
        EXPECT_FALSE(parent_of(tree, i) == parent_of(tree, j) && tree[i].token == tree[j].token);
    }
    drafter.begin(prompt, 100);
    const auto larger = grown(drafter, std::min(n + 1, kMostNodes), 4);
    for (int i = 0; i < static_cast<int>(tree.size()); ++i) {
      EXPECT_EQ(tree[i].token, larger[i].token) << "of " << n << " the draft " << i;
      EXPECT_EQ(parent_of(tree, i), parent_of(larger, i));
    }
  }
}

TEST(Union, TheTextFollowedThroughATreeTellsWhatItsGuessesAreWorth) {
  // The store says 7 or 8 behind 3, and it is always 8, its second.
  std::vector<Tokens> answers = often({3, 7});
  for (int i = 0; i < 55; ++i) answers.push_back({3, 8});
  UnionDrafter drafter({.own_text = false, .store = store_of(answers)});
  drafter.begin(Tokens{3}, 1000);
  EXPECT_EQ(grown(drafter, 2, 1).at(0).token, 7);
  for (int turn = 0; turn < 60; ++turn) {
    grown(drafter, 2, 1);
    drafter.observe(Tokens{8, 3}, {});
  }
  EXPECT_EQ(grown(drafter, 2, 1).at(0).token, 8);
}

TEST(Union, WhatIsNotWorthARowIsNotDrafted) {
  class Floor : public GrowthRule {
   public:
    bool pays(const Offer& /*offer*/) override { return true; }
    bool worth(double joint) const override { return joint >= 0.2; }
  };
  UnionDrafter drafter({.store = store_of(often({3, 7, 8, 9}))});
  drafter.begin(Tokens{1, 3, 4, 5, 3}, 100);
  Floor floor;
  const auto few = grown(drafter, 20, 8, &floor);
  const auto all = grown(drafter, 20, 8);
  EXPECT_LT(few.size(), all.size());
}

}  // namespace
}  // namespace paceline
