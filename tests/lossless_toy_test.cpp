// The text of a run with drafts is the trunk's own, byte for byte: over a toy trunk, whose every
// row is decided by its own path, so that nothing but the round can go wrong.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "spec/lookup.h"
#include "tests/toy_engine.h"
#include "tests/toy_runs.h"
#include "tests/toy_store.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

const std::vector<int> kDepths = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16};

Tokens some_prompt(int n, int vocab_size) {
  Tokens prompt(n);
  for (int i = 0; i < n; ++i) prompt[i] = (i * i + 3 * i + 7) % std::min(vocab_size, 40);
  return prompt;
}

// Every kind of script over a plain run.
std::vector<std::pair<std::string, Tokens>> scripts_over(const Tokens& plain, int vocab_size) {
  std::vector<std::pair<std::string, Tokens>> scripts = {{"right", plain}};
  const auto spoilt = [&](auto&& wrong_at) {
    Tokens script = plain;
    for (size_t i = 0; i < script.size(); ++i) {
      if (wrong_at(i)) script[i] = (script[i] + 1) % vocab_size;
    }
    return script;
  };
  scripts.emplace_back("wrong", spoilt([](size_t) { return true; }));
  for (size_t place = 2; place <= 9; ++place) {  // wrong at this place of every block
    scripts.emplace_back("place " + std::to_string(place),
                         spoilt([&](size_t i) { return i % place == 0; }));
  }
  std::mt19937 random(9);
  for (const unsigned of_ten : {2u, 5u, 8u}) {
    scripts.emplace_back(std::to_string(of_ten) + " of 10 wrong",
                         spoilt([&](size_t) { return random() % 10 < of_ten; }));
  }
  Tokens noise(plain.size());
  for (TokenId& token : noise) token = static_cast<TokenId>(random() % vocab_size);
  scripts.emplace_back("random", noise);
  scripts.emplace_back("half as long", Tokens(plain.begin(), plain.begin() + plain.size() / 2));
  return scripts;
}

void expect_lossless(const ToyOptions& toy, int n_prompt, int n_tokens,
                     const std::vector<int>& depths) {
  Engine engine = toy_engine(toy, {}, 2000, std::make_unique<ToyTokenizer>(letter_pairs(300)));
  engine.use_store(toy_store(engine));
  const Request request{.prompt = some_prompt(n_prompt, toy.vocab_size), .max_tokens = n_tokens};
  const Answer plain = plain_answer(engine, request);
  ASSERT_EQ(static_cast<int>(plain.tokens.size()), n_tokens);
  const auto expect_plain = [&](const Answer& got, const std::string& what) {
    EXPECT_EQ(got.tokens, plain.tokens) << what;
    EXPECT_EQ(got.text, plain.text) << what;
    EXPECT_EQ(got.streamed, plain.text) << what;
  };
  for (int depth : depths) {
    for (const auto& [name, script] : scripts_over(plain.tokens, toy.vocab_size)) {
      expect_plain(answer(engine, scripted(request, script, depth)),
                   name + ", depth " + std::to_string(depth));
    }
    for (const auto kind : {DrafterKind::Lookup, DrafterKind::Union}) {
      Request other = request;
      other.depth = depth;
      other.drafter = kind;
      const Answer got = answer(engine, other);
      expect_plain(got, got.drafter + ", depth " + std::to_string(depth));
    }
  }
  for (const auto kind : {DrafterKind::Lookup, DrafterKind::Union}) {
    Request other = request;
    other.drafter = kind;
    const Answer got = answer(engine, other);
    expect_plain(got, got.drafter + ", auto");
  }
  for (const auto& [name, script] : scripts_over(plain.tokens, toy.vocab_size)) {
    expect_plain(answer(engine, scripted(request, script, kAutoDepth)), name + ", auto");
  }
}

TEST(Lossless, OnTextThatNeverRepeats) { expect_lossless({}, 20, 120, kDepths); }

TEST(Lossless, OnTextThatRepeatsItself) {
  for (const int novelty : {0, 7, 31}) {
    expect_lossless({.speech = 5, .memory = 2, .novelty = novelty}, 20, 120, kDepths);
  }
}

TEST(Lossless, WhereTiesAreTheRuleZeroesOfEitherSignAmongThem) {
  for (const int levels : {1, 2, 3}) {  // 1: every logit is a zero, so id 0 throughout
    expect_lossless({.speech = 50, .levels = levels}, 20, 60, {1, 4, 8});
  }
  const Engine zeroes = toy_engine({.levels = 1});
  EXPECT_EQ(plain_answer(zeroes, {.prompt = {1}, .max_tokens = 5}).tokens, Tokens(5, 0));
}

TEST(Lossless, WithAVocabularyBeyondSixteenBits) {
  const ToyOptions toy{.vocab_size = 200'000, .speech = 200'000};
  const Engine engine = toy_engine(toy);
  const Request request{.prompt = {199'999, 70'000, 65'536}, .max_tokens = 24};
  const Answer plain = plain_answer(engine, request);
  EXPECT_GT(*std::max_element(plain.tokens.begin(), plain.tokens.end()), 65'535);
  for (const auto& [name, script] : scripts_over(plain.tokens, toy.vocab_size)) {
    EXPECT_EQ(answer(engine, scripted(request, script, 4)).tokens, plain.tokens) << name;
  }
}

TEST(Lossless, WhateverThePromptsLengthIsAgainstTheChunks) {
  for (const int n_prompt : {1, 2, 63, 64, 65, 128, 129, 341}) {
    expect_lossless({.speech = 30}, n_prompt, 20, {3});
  }
}

// Case 23, at a toy's pace: positions far from the start, forced partial acceptance.
TEST(Lossless, AcrossFarPositions) {
  const ToyModel model({.speech = 8, .memory = 2, .novelty = 11});
  ToyRunOptions options{.prompt = some_prompt(250, 300), .budget = 4000, .depth = 4};
  const Tokens plain = toy_plain(model, options);
  PlaceDrafter drafter(plain, 3, /*miss_rate=*/0.1);
  EXPECT_EQ(toy_run(model, drafter, options).tokens, plain);
}

TEST(Lossless, TwoRunsOfOneRequestAreEqualWhateverRanBetween) {
  const Engine engine = toy_engine({.speech = 6, .memory = 2, .novelty = 13});
  const Request request{.prompt = some_prompt(30, 300), .max_tokens = 200, .depth = 4};
  const Answer first = answer(engine, request);
  answer(engine, {.prompt = {5, 5, 5}, .max_tokens = 100});
  const Answer again = answer(engine, request);
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.stats.rounds, first.stats.rounds);
  EXPECT_EQ(again.stats.drafted_by_depth, first.stats.drafted_by_depth);
  EXPECT_EQ(again.stats.accepted_by_depth, first.stats.accepted_by_depth);
}

// Random everything, many times.
TEST(Lossless, HoldsForRandomRuns) {
  std::mt19937 random(77);
  for (int run = 0; run < 300; ++run) {
    const ToyModel model({.vocab_size = 300,
                          .speech = 2 + static_cast<int>(random() % 299),
                          .memory = 1 + static_cast<int>(random() % 5),
                          .novelty = static_cast<int>(random() % 12),
                          .levels = 1 << (random() % 20),
                          .seed = random()});
    ToyRunOptions options{.prompt = some_prompt(1 + static_cast<int>(random() % 140), 300),
                          .budget = 1 + static_cast<int>(random() % 150),
                          .depth = static_cast<int>(random() % 17)};
    const Tokens plain = toy_plain(model, options);
    PlaceDrafter at_place(plain, static_cast<int>(random() % 8), (run % 5) * 0.2);
    LookupDrafter lookup({.min_match = 1 + run % 3});
    EXPECT_EQ(toy_run(model, at_place, options).tokens, plain) << "run " << run;
    EXPECT_EQ(toy_run(model, lookup, options).tokens, plain) << "run " << run;
  }
}

TEST(Union, ReportsWhoDraftedWhat) {
  Engine engine = toy_engine({.memory = 3});
  const Request request{
      .prompt = some_prompt(20, 300), .max_tokens = 100, .depth = 4, .drafter = DrafterKind::Union};
  // Text that never repeats: lookup has nothing, and a store of other answers next to nothing.
  EXPECT_EQ(answer(engine, request).stats.accepted_by_depth[0], 0);
  // A store of this very answer knows it by heart, from the second token on.
  StoreBuilder builder("", 300);
  builder.add(plain_answer(engine, request).tokens);
  const std::string path = testing::TempDir() + "union.plstore";
  ASSERT_TRUE(builder.save(path));
  engine.use_store(*NgramStore::open(path));
  const Answer got = answer(engine, request);
  EXPECT_EQ(got.drafter, "union");
  EXPECT_GT(got.stats.accepted_by_source[static_cast<int>(DraftSource::Store)], 70);
  EXPECT_GE(got.stats.drafted_by_source[static_cast<int>(DraftSource::Store)],
            got.stats.accepted_by_source[static_cast<int>(DraftSource::Store)]);
  EXPECT_GT(got.stats.tokens_per_round(), 3.5);
}

TEST(Lookup, DraftsWellWhereTextRepeatsAndIsSilentOnNewText) {
  // Two tokens decide the next, over five words: a cycle of at most 25 before long.
  const Engine repeating = toy_engine({.speech = 5, .memory = 2});
  const Request request{.prompt = some_prompt(20, 300), .max_tokens = 400, .depth = 8};
  const Answer got = answer(repeating, request);  // auto, and there is neither head nor store
  EXPECT_EQ(got.drafter, "lookup");
  EXPECT_GT(got.stats.tokens_per_round(), 6);
  EXPECT_GT(got.stats.accepted_by_source[static_cast<int>(DraftSource::Lookup)], 300);

  // A token that has not occurred yet gives no match, so nothing is drafted behind it.
  const ToyOptions wide{.vocab_size = 50'000, .speech = 50'000};
  const Answer fresh =
      answer(toy_engine(wide), {.prompt = {1, 2, 3}, .max_tokens = 40, .depth = 8});
  ASSERT_EQ(std::set<TokenId>(fresh.tokens.begin(), fresh.tokens.end()).size(), 40u);
  EXPECT_EQ(fresh.stats.drafted_by_depth, std::vector<int64_t>(8, 0));
}

// Case 66, with costs at which a row is cheap, so that only the drafts' failure counts.
// Of equal logits the highest id: the other way round than everywhere else.
TokenId highest_of_equals(std::span<const float> row) {
  int best = 0;
  for (size_t i = 1; i < row.size(); ++i)
    if (row[i] >= row[best]) best = static_cast<int>(i);
  return best;
}

// The negative control of ties: a verify that breaks them its own way writes another text.
TEST(Lossless, ASwappedTieRuleIsCaught) {
  const ToyModel model({.levels = 6});  // many equal logits
  const ToyRunOptions options{.budget = 40};
  const Tokens plain = toy_plain(model, options);
  PlaceDrafter drafter(plain, 0);
  EXPECT_EQ(toy_run(model, drafter, options).tokens, plain);
  GreedyRule swapped(highest_of_equals);
  ToyRunOptions faulty = options;
  faulty.rule = &swapped;
  EXPECT_NE(toy_run(model, drafter, faulty).tokens, plain);
}

TEST(Policy, PushesFewRowsWhereNothingStandsAndKeepsAGoodDrafter) {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m) costs.verify[m] = 1 + 0.04 * (m - 1);
  const ToyModel model;
  const auto rows_per_token = [&](int wrong_place, DepthPolicy& policy) {
    ToyRunOptions options{.budget = 1050, .depth = 8, .policy = &policy, .costs = &costs};
    PlaceDrafter drafter(toy_plain(model, options), wrong_place);
    const ToyRun run = toy_run(model, drafter, options);
    int64_t rows = 0;
    int64_t tokens = 0;
    for (size_t i = std::min<size_t>(50, run.rounds.size() / 2); i < run.rounds.size(); ++i) {
      rows += run.rounds[i].n_drafted + 1;
      tokens += run.rounds[i].n_emitted;
    }
    return static_cast<double>(rows) / static_cast<double>(tokens);
  };
  DepthPolicy wrong;
  EXPECT_LT(rows_per_token(1, wrong), 1.2);
  EXPECT_GT(rows_per_token(1, wrong), 1.0) << "drafts are tried again now and then";
  DepthPolicy right;
  EXPECT_NEAR(rows_per_token(0, right), 1.0, 0.01);

  ToyRunOptions options{.budget = 1000, .depth = 8, .policy = &right, .costs = &costs};
  PlaceDrafter drafter(toy_plain(model, options), 0);
  const ToyRun run = toy_run(model, drafter, options);
  EXPECT_LT(run.rounds.size(), 1000u / 8) << "a good drafter is used to its depth";
}

}  // namespace
}  // namespace paceline
