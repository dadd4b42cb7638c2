// Replay counts what a live run counts, integer for integer.
#include "spec/replay.h"

#include <gtest/gtest.h>

#include <random>

#include "spec/lookup.h"
#include "tests/toy_engine.h"
#include "tests/toy_head.h"
#include "tests/toy_runs.h"
#include "tests/toy_store.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

Tokens random_prompt(std::mt19937& random, int longest) {
  Tokens prompt(1 + random() % longest);
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % 12);
  return prompt;
}

Tokens joined(const Tokens& prompt, const Tokens& output) {
  Tokens text = prompt;
  text.insert(text.end(), output.begin(), output.end());
  return text;
}

// Every call, with everything that it hands over, as numbers.
class NotingDrafter : public PlaceDrafter {
 public:
  using PlaceDrafter::PlaceDrafter;
  void begin(std::span<const TokenId> prompt, int capacity) override {
    PlaceDrafter::begin(prompt, capacity);
    note(-1, prompt);
    calls.push_back(capacity);
  }
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override {
    note(-2, next);
    note(hidden);
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override {
    PlaceDrafter::observe(tokens, hidden);
    note(-3, tokens);
    note(hidden);
  }
  int draft(std::span<Draft> out) override {
    calls.push_back(-4);
    calls.push_back(static_cast<double>(out.size()));
    return PlaceDrafter::draft(out);
  }
  std::vector<double> calls;

 private:
  void note(int what, std::span<const TokenId> tokens) {
    calls.push_back(what);
    calls.insert(calls.end(), tokens.begin(), tokens.end());
  }
  void note(Mat<const float> hidden) {
    for (int i = 0; i < hidden.rows; ++i)
      calls.insert(calls.end(), hidden.row(i).begin(), hidden.row(i).end());
  }
};

TEST(Replay, GivesADrafterTheCallsOfALiveRun) {
  std::mt19937 random(5);
  for (int run = 0; run < 200; ++run) {
    const ToyModel model({.speech = 40, .seed = random()});
    ToyRunOptions options{.prompt = random_prompt(random, 150),
                          .budget = 1 + static_cast<int>(random() % 60),
                          .depth = static_cast<int>(random() % 9)};
    if (run % 2 == 1) options.end = static_cast<TokenId>(random() % 40);
    const Tokens plain = toy_plain(model, options);
    const int place = static_cast<int>(random() % 5);
    NotingDrafter live(plain, place, 0.2);
    const ToyRun ran = toy_run(model, live, options);
    ASSERT_EQ(ran.tokens, plain);

    NotingDrafter replayed(plain, place, 0.2);
    const Tokens text = joined(options.prompt, plain);
    const RoundCounts counts = replay_stream(
        {.tokens = text,
         .n_prompt = static_cast<int>(options.prompt.size()),
         .budget = options.budget,
         .hidden =
             [&](int row, std::span<float> out) {  // the toy's: position, token, 1, -1
               const float values[] = {static_cast<float>(row), static_cast<float>(text[row]), 1,
                                       -1};
               std::copy_n(values, 4, out.begin());
             },
         .dim = ToyModel::kDim},
        replayed, {.limit = options.depth});
    ASSERT_EQ(replayed.calls, live.calls) << "run " << run;
    EXPECT_EQ(counts.rounds, static_cast<int64_t>(ran.rounds.size()));
  }
}

// The requests that live runs and replays are compared on: text that repeats itself, any budget,
// depth and prompt, and every way to end.
struct Case {
  ToyOptions toy;
  Tokens end_ids;
  Request request;
};

Case random_case(std::mt19937& random, int run) {
  Case made;
  made.toy = {.speech = 3 + static_cast<int>(random() % 20),
              .memory = 1 + static_cast<int>(random() % 3),
              .novelty = static_cast<int>(random() % 12),
              .levels = 512,
              .seed = random()};
  made.request.prompt = random_prompt(random, 150);
  made.request.max_tokens = 1 + static_cast<int>(random() % 150);
  made.request.depth = static_cast<int>(random() % 17);
  if (run % 2 == 1) made.request.sampling = {.temperature = 1.5, .top_k = 6, .seed = random()};
  if (run % 3 == 1) made.end_ids = {static_cast<TokenId>(random() % 20)};
  // Pieces of letter_pairs: two letters a token, so most stops end inside a block.
  if (run % 3 == 2) made.request.stop = {std::string(1, static_cast<char>('a' + random() % 20))};
  if (run % 5 == 0) made.request.ignore_eos = true;
  return made;
}

RoundCounts replayed(const Case& of, const Answer& live, Drafter& drafter, int budget) {
  const Tokens text = joined(of.request.prompt, live.tokens);
  return replay_stream(
      {.tokens = text, .n_prompt = static_cast<int>(of.request.prompt.size()), .budget = budget},
      drafter, {.limit = of.request.depth});
}

TEST(Replay, CountsLookupsRoundsAsTheLiveRunDoes) {
  std::mt19937 random(6);
  int ended = 0;
  int64_t accepted = 0;
  for (int run = 0; run < 600; ++run) {
    Case of = random_case(random, run);
    of.request.drafter = DrafterKind::Lookup;
    const Engine engine =
        toy_engine(of.toy, of.end_ids, 2000, std::make_unique<ToyTokenizer>(letter_pairs(300)));
    const Answer live = answer(engine, of.request);
    ASSERT_EQ(live.error, "");
    if (live.reason == FinishReason::Stop) ++ended;
    if (of.request.depth > 0) accepted += live.stats.accepted_by_depth[0];
    LookupDrafter drafter({.min_match = 2});
    const RoundCounts want = live.stats;
    EXPECT_EQ(replayed(of, live, drafter, of.request.max_tokens), want) << "run " << run;
  }
  EXPECT_GT(ended, 100);
  EXPECT_GT(accepted, 1000);
}

TEST(Replay, CountsTheUnionsRoundsAsTheLiveRunDoes) {
  std::mt19937 random(8);
  int64_t by_lookup = 0;
  int64_t by_store = 0;
  for (int run = 0; run < 100; ++run) {
    Case of = random_case(random, run);
    of.request.drafter = run % 2 == 0 ? DrafterKind::Union : DrafterKind::Auto;
    Engine engine =
        toy_engine(of.toy, of.end_ids, 2000, std::make_unique<ToyTokenizer>(letter_pairs(300)));
    engine.use_store(toy_store(engine, 3));
    const Answer live = answer(engine, of.request);
    ASSERT_EQ(live.error, "");
    if (of.request.depth > 0) {
      EXPECT_EQ(live.drafter, "union");
    }
    by_lookup += live.stats.accepted_by_source[static_cast<int>(DraftSource::Lookup)];
    by_store += live.stats.accepted_by_source[static_cast<int>(DraftSource::Store)];
    const RoundCounts want = live.stats;
    const Tokens text = joined(of.request.prompt, live.tokens);
    const auto counts = engine.replay({.tokens = text,
                                       .n_prompt = static_cast<int>(of.request.prompt.size()),
                                       .budget = of.request.max_tokens},
                                      of.request);
    ASSERT_TRUE(counts);
    EXPECT_EQ(*counts, want) << "run " << run;
  }
  EXPECT_GT(by_lookup, 200);
  EXPECT_GT(by_store, 200);
}

// A head's drafts hang on every hidden that it was handed, so a row too many, too few, or at
// another place would tell.
TEST(Replay, CountsAHeadsRoundsAsTheLiveRunDoesAloneAndInTheUnion) {
  std::mt19937 random(9);
  int64_t by_head = 0;
  int64_t by_store = 0;
  for (int run = 0; run < 120; ++run) {
    Case of = random_case(random, run);
    of.request.stop.clear();
    of.request.drafter = run % 4 == 0 ? DrafterKind::Mtp : DrafterKind::Union;
    auto engine = Engine::with_model(std::make_unique<ToyHeadedModel>(of.toy), 2000, 1, of.end_ids,
                                     CacheType::F32);
    ASSERT_TRUE(engine);
    HeadTensors head;
    head.config.modules = 1 + run % 3;
    if (run % 2 == 0) engine->use_store(toy_store(*engine, 2));
    ASSERT_TRUE(engine->use_head(head));
    const Answer live = answer(*engine, of.request);
    ASSERT_EQ(live.error, "");
    by_head += live.stats.accepted_by_source[static_cast<int>(DraftSource::Mtp)];
    by_store += live.stats.accepted_by_source[static_cast<int>(DraftSource::Store)];
    const RoundCounts want = live.stats;
    const Tokens text = joined(of.request.prompt, live.tokens);
    const auto counts =
        engine->replay({.tokens = text,
                        .n_prompt = static_cast<int>(of.request.prompt.size()),
                        .budget = of.request.max_tokens,
                        .hidden =
                            [&](int row, std::span<float> out) {
                              const float values[] = {static_cast<float>(row),
                                                      static_cast<float>(text[row]), 1, -1};
                              std::copy_n(values, 4, out.begin());
                            },
                        .dim = ToyModel::kDim},
                       of.request);
    ASSERT_TRUE(counts);
    EXPECT_EQ(*counts, want) << "run " << run;
  }
  EXPECT_GT(by_head, 300);
  EXPECT_GT(by_store, 100);
}

TEST(NegativeControl, AReplayWithAnotherBudgetOrOtherDraftsCountsOtherwise) {
  int unclipped = 0;
  int eager = 0;
  for (int budget = 100; budget < 120; ++budget) {
    const Case of = {.toy = {.speech = 5, .memory = 2, .novelty = 7},
                     .end_ids = {},
                     .request = {.prompt = {1, 2, 3}, .max_tokens = budget, .depth = 8}};
    const Answer live = answer(toy_engine(of.toy), of.request);
    const RoundCounts want = live.stats;
    LookupDrafter as_live({.min_match = 2});
    EXPECT_EQ(replayed(of, live, as_live, budget), want);
    if (replayed(of, live, as_live, budget + 8) != want) ++unclipped;
    LookupDrafter other({.min_match = 1});
    if (replayed(of, live, other, budget) != want) ++eager;
  }
  EXPECT_GT(unclipped, 5) << "blocks that the budget clipped";
  EXPECT_EQ(eager, 20);
}

}  // namespace
}  // namespace paceline
