#include "spec/round.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "spec/lookup.h"
#include "tests/draft_lists.h"
#include "tests/toy_model.h"
#include "tests/toy_runs.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

TEST(Round, AcceptsToThePlaceThatIsWrongAndCountsIt) {
  const ToyModel model;
  const Tokens plain = toy_plain(model);
  for (const int place : {1, 2, 3, 4}) {
    PlaceDrafter drafter(plain, place);
    const ToyRun run = toy_run(model, drafter);
    EXPECT_EQ(run.tokens, plain);
    for (size_t i = 0; i + 5 < run.rounds.size(); ++i) {  // the last are clipped
      EXPECT_EQ(run.rounds[i].n_drafted, 4);
      EXPECT_EQ(run.rounds[i].n_accepted, place - 1);
      EXPECT_EQ(run.rounds[i].n_emitted, place);
    }
  }
}

// Whatever tree is drafted, the text is the plain one and the state holds it, and no more.
TEST(Round, ATreeOfAnyShapeWritesThePlainText) {
  const ToyModel model;
  int on_branches = 0;  // rounds whose path is no chain of the first rows
  for (const int nodes : {1, 2, 3, 8, 15, 31}) {
    for (const int depth : {1, 2, 4, 16}) {
      for (unsigned seed = 1; seed <= 4; ++seed) {
        ToyRunOptions options{.budget = 60, .depth = depth, .nodes = nodes};
        const Tokens plain = toy_plain(model, options);
        RandomTreeDrafter drafter(plain, seed);
        options.check_round = [&](const Sequence& seq, const Tokens& output) {
          Tokens want = options.prompt;
          want.insert(want.end(), output.begin(), output.end() - 1);
          ASSERT_EQ(static_cast<const ToyState&>(*seq.state).tokens(), want);
        };
        const ToyRun run = toy_run(model, drafter, options);
        ASSERT_EQ(run.tokens, plain) << nodes << " nodes, depth " << depth << ", seed " << seed;
        for (const RoundStats& round : run.rounds) {
          ASSERT_LE(round.n_accepted, round.n_drafted);
          ASSERT_LE(round.n_drafted, depth);
          const auto path = round.standing();
          on_branches += !path.empty() && path.back() + 1 != round.n_accepted ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(on_branches, 100);
}

TEST(Round, ATreeIsClippedToTheBudgetAndEndsAtAnEndToken) {
  const ToyModel model;
  for (int budget = 1; budget <= 20; ++budget) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
      ToyRunOptions options{.budget = budget, .depth = 8, .nodes = 20};
      const Tokens plain = toy_plain(model, options);
      RandomTreeDrafter drafter(plain, seed);
      ASSERT_EQ(toy_run(model, drafter, options).tokens, plain);
      if (std::count(plain.begin(), plain.end() - 1, plain.back()) > 0) continue;
      options.budget = 40;
      options.end = plain.back();
      RandomTreeDrafter to_the_end(toy_plain(model, {.budget = 40}), seed);
      const ToyRun run = toy_run(model, to_the_end, options);
      ASSERT_EQ(run.tokens, plain) << "nothing follows the end";
      EXPECT_LE(run.rounds.empty() ? 0 : run.rounds.back().n_drafted, budget);
    }
  }
}

// Case 18, and the same for every place.
TEST(Round, TheStateHoldsPromptAndOutputButThePendingToken) {
  const ToyModel model;
  Tokens prompt(20);
  for (int i = 0; i < 20; ++i) prompt[i] = 7 * i % 300;
  for (const int place : {0, 1, 2, 3}) {
    ToyRunOptions options{.prompt = prompt, .budget = 40, .depth = 3};
    PlaceDrafter drafter(toy_plain(model, options), place);
    int rounds = -1;
    options.check_round = [&](const Sequence& seq, const Tokens& output) {
      Tokens want = prompt;
      want.insert(want.end(), output.begin(), output.end() - 1);
      EXPECT_EQ(seq.state->length(), static_cast<int>(want.size()));
      EXPECT_EQ(static_cast<const ToyState&>(*seq.state).tokens(), want);
      EXPECT_EQ(seq.pending, output.back());
      EXPECT_EQ(seq.budget, 40 - static_cast<int>(output.size()));
      ++rounds;
    };
    toy_run(model, drafter, options);
    EXPECT_GE(rounds, 5);
  }
}

TEST(Round, IsClippedToTheBudget) {
  const ToyModel model;
  for (int budget = 1; budget <= 20; ++budget) {
    ToyRunOptions options{.budget = budget, .depth = 4};
    const Tokens plain = toy_plain(model, options);
    ASSERT_EQ(static_cast<int>(plain.size()), budget);
    for (const int place : {0, 1, 4}) {  // all right, wrong first, wrong last
      PlaceDrafter drafter(plain, place);
      const ToyRun run = toy_run(model, drafter, options);
      EXPECT_EQ(run.tokens, plain);
      int left = budget - 1;
      for (const RoundStats& round : run.rounds) {
        EXPECT_EQ(round.n_proposed, std::min(4, left - 1));  // the last token needs no draft
        left -= round.n_emitted;
      }
    }
  }
}

// The end token at each place of a block of 5, all drafts right: the block before it is shifted by
// the budgets of depth.
TEST(Round, DraftsBehindAnEndCountNeitherAsDraftedNorAsAccepted) {
  const ToyModel model;
  const Tokens plain = toy_plain(model, {.budget = 30});
  for (int at = 1; at <= 12; ++at) {
    ASSERT_EQ(std::count(plain.begin(), plain.begin() + at, plain[at]), 0);
    PlaceDrafter drafter(plain, 0);
    int length = 0;
    ToyRunOptions options{.budget = 30, .depth = 4, .end = plain[at]};
    options.check_round = [&](const Sequence& seq, const Tokens&) { length = seq.state->length(); };
    const ToyRun run = toy_run(model, drafter, options);
    EXPECT_EQ(run.tokens, Tokens(plain.begin(), plain.begin() + at + 1));
    EXPECT_EQ(length, 5 + at) << "nothing behind the end stays in the cache";
    const int index = (at - 1) % 5;  // of the end within its block
    const RoundStats& last = run.rounds.back();
    EXPECT_TRUE(last.ended);
    EXPECT_EQ(last.n_emitted, index + 1);
    EXPECT_EQ(last.n_drafted, std::min(4, index + 1));
    EXPECT_EQ(last.n_accepted, std::min(4, index + 1));
  }
}

TEST(Round, AnEndAsCorrectionLeavesTheDraftThatFellCounted) {
  const ToyModel model;
  const Tokens plain = toy_plain(model, {.budget = 30});
  PlaceDrafter drafter(plain, 2);
  const ToyRun run = toy_run(model, drafter, {.budget = 30, .depth = 4, .end = plain[2]});
  ASSERT_EQ(run.rounds.size(), 1u);
  EXPECT_EQ(run.rounds[0].n_emitted, 2);  // one draft, then the correction that ends
  EXPECT_EQ(run.rounds[0].n_accepted, 1);
  EXPECT_EQ(run.rounds[0].n_drafted, 2);  // depth 2 fell; depths 3 and 4 lie behind the end
}

// Cases 30 and 33: what a draft head is fed.
class HeadProbe : public PlaceDrafter {
 public:
  using PlaceDrafter::PlaceDrafter;
  void begin(std::span<const TokenId> prompt, int capacity) override {
    PlaceDrafter::begin(prompt, capacity);
    pairs.clear();
  }
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override {
    note(next, hidden);
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override {
    PlaceDrafter::observe(tokens, hidden);
    note(tokens, hidden);
    last_row_position = static_cast<int>(hidden.row(hidden.rows - 1)[0]);
  }

  struct Pair {
    int position;   // of the hidden row
    TokenId token;  // read by the trunk there
    TokenId next;
  };
  std::vector<Pair> pairs;
  int last_row_position = -1;

 private:
  void note(std::span<const TokenId> next, Mat<const float> hidden) {
    ASSERT_EQ(static_cast<int>(next.size()), hidden.rows);
    for (int i = 0; i < hidden.rows; ++i) {
      pairs.push_back(
          {static_cast<int>(hidden.row(i)[0]), static_cast<TokenId>(hidden.row(i)[1]), next[i]});
    }
  }
};

TEST(Round, EveryCommittedHiddenIsHandedOverOnceWithTheTokenBehindIt) {
  const ToyModel model;
  for (const int n_prompt : {1, 6, 63, 64, 65, 129, 300}) {
    Tokens text(n_prompt);
    for (int i = 0; i < n_prompt; ++i) text[i] = 11 * i % 300;
    ToyRunOptions options{.prompt = text, .budget = 50, .depth = 4};
    const Tokens plain = toy_plain(model, options);
    text.insert(text.end(), plain.begin(), plain.end());
    for (const int place : {0, 1, 2, 3, 4}) {
      HeadProbe probe(plain, place);
      ASSERT_EQ(toy_run(model, probe, options).tokens, plain);
      ASSERT_EQ(probe.pairs.size(), text.size() - 1);
      for (size_t i = 0; i < probe.pairs.size(); ++i) {
        EXPECT_EQ(probe.pairs[i].position, static_cast<int>(i));
        EXPECT_EQ(probe.pairs[i].token, text[i]);
        EXPECT_EQ(probe.pairs[i].next, text[i + 1]);
      }
    }
  }
}

TEST(Round, TheHiddenCarriedOnIsTheRowOfTheAcceptedDrafts) {
  const ToyModel model;
  const Tokens plain = toy_plain(model);
  for (const int accepted : {0, 1, 2, 3, 4}) {
    HeadProbe probe(plain, accepted + 1);  // place 5 of 4 is never wrong
    int before = -1;
    int rounds = 0;
    ToyRunOptions options;
    options.check_round = [&](const Sequence& seq, const Tokens& output) {
      if (before >= 0 && seq.budget > 5) {
        EXPECT_EQ(probe.last_row_position, before + accepted);
        EXPECT_EQ(probe.pairs.back().next, output.back());
        ++rounds;
      }
      before = seq.state->length();  // the position of the next block's row 0
    };
    toy_run(model, probe, options);
    EXPECT_GE(rounds, 5);
  }
}

TEST(Round, ARowWithoutFiniteMaximumEndsInAnErrorOnlyWhereItCounts) {
  // Position 20 is read by the pass that chooses output index 16.
  const ToyModel model({.nan_from_pos = 20});
  SilentDrafter none;
  const ToyRun alone = toy_run(model, none, {.depth = 0});
  EXPECT_NE(alone.error.find("position 20 "), std::string::npos) << alone.error;
  ASSERT_EQ(alone.tokens.size(), 16u);
  // A drafter that is always wrong reads void rows behind it, and must not fail earlier.
  PlaceDrafter wrong(alone.tokens, 1);
  const ToyRun run = toy_run(model, wrong);
  EXPECT_EQ(run.error, alone.error);
  EXPECT_EQ(run.tokens, alone.tokens);
  // One that is always right reads the faulty row together with tokens before it.
  for (const int depth : {1, 2, 3, 4, 5, 6, 7, 8}) {
    PlaceDrafter right(alone.tokens, 0);
    const ToyRun ahead = toy_run(model, right, {.depth = depth});
    EXPECT_EQ(ahead.error, alone.error) << "depth " << depth;
    EXPECT_EQ(ahead.tokens, alone.tokens) << "depth " << depth;
  }
}

TEST(Round, AFaultBehindTheEndOfTheTextIsNone) {
  const Tokens plain = toy_plain(ToyModel());
  ASSERT_EQ(std::count(plain.begin(), plain.begin() + 10, plain[10]), 0);
  // The text ends with output index 10, at position 15; every row from there on is faulty.
  const ToyModel model({.nan_from_pos = 15});
  for (const int depth : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    PlaceDrafter right(plain, 0);
    const ToyRun run = toy_run(model, right, {.depth = depth, .end = plain[10]});
    EXPECT_EQ(run.error, "") << "depth " << depth;
    EXPECT_EQ(run.tokens, Tokens(plain.begin(), plain.begin() + 11)) << "depth " << depth;
  }
}

// Negative controls: the comparison that the other tests rest on notices these faults.
TEST(NegativeControl, ASkippedRollbackChangesTheText) {
  ToyOptions options;
  const Tokens plain = toy_plain(ToyModel(options));
  options.skips_rollback = true;
  const ToyModel broken(options);
  EXPECT_EQ(toy_plain(broken), plain) << "without drafts nothing needs rolling back";
  for (const int place : {1, 2, 3, 4}) {
    PlaceDrafter drafter(plain, place);
    EXPECT_NE(toy_run(broken, drafter).tokens, plain) << "place " << place;
  }
}

class OneTooMany : public GreedyRule {
 public:
  OneTooMany() : GreedyRule(plain_argmax) {}
  Result<Accepted> accept(std::span<const Draft> drafts, Mat<float> logits,
                          int first_pos) override {
    auto accepted = GreedyRule::accept(drafts, logits, first_pos);
    if (accepted && accepted->n_drafts < static_cast<int>(drafts.size())) {  // a chain
      accepted->path[accepted->n_drafts] = static_cast<uint8_t>(accepted->n_drafts);
      accepted->next = plain_argmax(logits.row(++accepted->n_drafts));
    }
    return accepted;
  }
};

class CarelessSink : public TokenSink {
 public:
  explicit CarelessSink(int budget) : budget_(budget) {}
  bool emit(const EmittedToken& token, std::span<const float> /*logits*/) override {
    tokens.push_back(token.id);
    return static_cast<int>(tokens.size()) < budget_;
  }
  Tokens tokens;

 private:
  int budget_;
};

TEST(NegativeControl, AcceptingOneTooManyChangesTheText) {
  const ToyModel model;
  const ToyRunOptions options;
  const Tokens plain = toy_plain(model, options);
  for (const int place : {1, 2, 3, 4}) {
    PlaceDrafter drafter(plain, place);
    auto seq =
        make_sequence(*model.make_state(4 + options.budget, CacheType::F32), options.budget, 4);
    auto workspace = *model.make_workspace(kPrefillRows, 5);
    CarelessSink sink(options.budget);
    drafter.begin(options.prompt, 100);
    OneTooMany rule;
    ASSERT_TRUE(run_prefill(seq, model, *workspace, options.prompt, drafter, rule, sink));
    for (bool ended = false; !ended;) {
      const auto round = run_round(seq, model, *workspace, drafter, {.limit = 4}, rule, sink);
      ASSERT_TRUE(round);
      ended = round->ended;
    }
    EXPECT_NE(sink.tokens, plain) << "place " << place;
  }
}

TEST(ToyModel, ARowDependsOnItsOwnPathAlone) {
  const auto logits_of = [](const ToyModel& model, bool as_tree) {
    auto state = model.make_state(20, CacheType::F32);
    auto workspace = model.make_workspace(8, 8);
    Block block(8);
    block.reset(0);
    block.add(5);
    model.forward(block, **state, LogitRows::None, **workspace);
    (*state)->commit(1);
    block.reset(1);
    block.add(7);
    if (as_tree) block.add(9, Block::kNoParent);  // a sibling between the rows of the path
    const int row = block.add(8, 0);
    const TrunkOut out = model.forward(block, **state, LogitRows::All, **workspace);
    const auto last = out.logits.row(row);
    return std::vector<float>(last.begin(), last.end());
  };
  EXPECT_EQ(logits_of(ToyModel(), true), logits_of(ToyModel(), false));
  const ToyModel broken({.mixes_siblings = true});
  EXPECT_NE(logits_of(broken, true), logits_of(broken, false));
}

}  // namespace
}  // namespace paceline
