// Sampled text is the trunk's own too, byte for byte: at any temperature, with any filter and
// penalty, whatever drafts. Over the toy trunk, and against sampling by plain loops.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "kernels/choose.h"
#include "spec/lookup.h"
#include "spec/sampling.h"
#include "tests/plain_sampling.h"
#include "tests/toy_engine.h"
#include "tests/toy_runs.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
constexpr double kInf = std::numeric_limits<double>::infinity();

const KernelTable& best_table() { return *kernel_tables().back(); }

// Logits from 0 to 8, so that many tokens have a chance; text that repeats itself now and then.
const ToyOptions kToy{.speech = 40, .memory = 2, .novelty = 11, .levels = 512};

std::vector<std::pair<std::string, SamplingOptions>> all_options() {
  return {
      {"greedy, repetition", {.repetition_penalty = 1.3}},
      {"greedy, presence", {.presence_penalty = 0.8}},
      {"greedy, frequency", {.frequency_penalty = 0.5}},
      {"greedy, all penalties",
       {.repetition_penalty = 1.3, .frequency_penalty = 0.5, .presence_penalty = 0.8}},
      {"greedy, bias", {.logit_bias = {{7, -kInf}, {9, 100}, {11, -3}}}},
      {"0.3", {.temperature = 0.3}},
      {"0.8", {.temperature = 0.8, .seed = 42}},
      {"1", {.temperature = 1}},
      {"1.5", {.temperature = 1.5, .seed = 0xffffffffffffffffu}},
      {"top-k", {.temperature = 0.8, .top_k = 5}},
      {"top-p", {.temperature = 0.8, .top_p = 0.9}},
      {"min-p", {.temperature = 0.8, .min_p = 0.1}},
      {"everything",
       {.repetition_penalty = 1.2,
        .frequency_penalty = 0.1,
        .presence_penalty = 0.2,
        .logit_bias = {{3, 1.5}, {4, -kInf}},
        .temperature = 0.7,
        .top_k = 20,
        .top_p = 0.95,
        .min_p = 0.02,
        .seed = 9}},
  };
}

Tokens spoilt(Tokens script, size_t every) {
  for (size_t i = every - 1; i < script.size(); i += every) script[i] = (script[i] + 1) % 300;
  return script;
}

TEST(LosslessSampling, WhateverIsDraftedAndHowDeep) {
  const Engine engine =
      toy_engine(kToy, {}, 2000, std::make_unique<ToyTokenizer>(letter_pairs(300)));
  std::mt19937 random(5);
  for (const auto& [name, sampling] : all_options()) {
    const Request request{.prompt = {3, 1, 4, 1, 5, 9}, .max_tokens = 120, .sampling = sampling};
    const Answer plain = plain_answer(engine, request);
    ASSERT_EQ(plain.tokens.size(), 120u) << plain.error;
    Tokens noise(120);
    for (TokenId& token : noise) token = static_cast<TokenId>(random() % 300);
    for (const int depth : {1, 2, 4, 8, 16, kAutoDepth}) {
      const auto expect_plain = [&](const char* drafter, const Answer& got) {
        EXPECT_EQ(got.tokens, plain.tokens) << name << ", " << drafter << ", depth " << depth;
        EXPECT_EQ(got.streamed, plain.text) << name << ", " << drafter << ", depth " << depth;
        return got;
      };
      const Answer right =
          expect_plain("right", answer(engine, scripted(request, plain.tokens, depth)));
      EXPECT_GT(right.stats.tokens_per_round(), depth == kAutoDepth ? 1.5 : 0.8 * (depth + 1));
      for (const size_t every : {1, 2, 3, 5})
        expect_plain("wrong ones",
                     answer(engine, scripted(request, spoilt(plain.tokens, every), depth)));
      expect_plain("random", answer(engine, scripted(request, noise, depth)));
      Request lookup = request;
      lookup.depth = depth;
      lookup.drafter = DrafterKind::Lookup;
      expect_plain("lookup", answer(engine, lookup));
    }
  }
}

// Holds every token against plain loops over the row that it comes with.
class PlainSink : public TokenSink {
 public:
  PlainSink(SamplingOptions options, Tokens prompt, int budget)
      : options_(std::move(options)), prompt_(std::move(prompt)), budget_(budget) {}
  bool emit(const EmittedToken& token, std::span<const float> logits) override {
    const int position = static_cast<int>(prompt_.size() + tokens.size());
    EXPECT_EQ(token.id, plain_sample(options_, logits, prompt_, tokens, position));
    tokens.push_back(token.id);
    return static_cast<int>(tokens.size()) < budget_;
  }
  Tokens tokens;

 private:
  SamplingOptions options_;
  Tokens prompt_;
  int budget_;
};

TEST(LosslessSampling, EveryTokenIsThatOfPlainLoopsAtItsAbsolutePosition) {
  const ToyModel model(kToy);
  const Tokens prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  constexpr int kBudget = 60;
  for (const auto& [name, sampling] : all_options()) {
    SCOPED_TRACE(name);
    for (const int depth : {0, 3}) {
      SampledRule rule(sampling, 300, best_table());
      ToyRunOptions options{.prompt = prompt, .budget = kBudget, .rule = &rule};
      PlaceDrafter drafter(toy_plain(model, options), 3, 0.1);
      auto seq = make_sequence(*model.make_state(100, CacheType::F32), kBudget, depth);
      auto workspace = *model.make_workspace(kPrefillRows, kPrefillRows);
      PlainSink sink(sampling, prompt, kBudget);
      drafter.begin(prompt, 100);
      rule.begin(prompt, 100);
      ASSERT_TRUE(run_prefill(seq, model, *workspace, prompt, drafter, rule, sink));
      for (bool ended = false; !ended;) {
        const auto round = run_round(seq, model, *workspace, drafter, {.limit = depth}, rule, sink);
        ASSERT_TRUE(round);
        ended = round->ended;
      }
      EXPECT_EQ(sink.tokens.size(), static_cast<size_t>(kBudget));
    }
  }
}

TEST(LosslessSampling, EachPenaltyChangesTheText) {
  const Engine engine = toy_engine(kToy);
  std::set<Tokens> texts;
  for (const auto& [name, sampling] : all_options()) {
    const Tokens tokens =
        plain_answer(engine, {.prompt = {3, 1}, .max_tokens = 100, .sampling = sampling}).tokens;
    EXPECT_TRUE(texts.insert(tokens).second) << name << " writes what another option writes";
  }
  EXPECT_TRUE(
      texts.insert(plain_answer(engine, {.prompt = {3, 1}, .max_tokens = 100}).tokens).second);
}

// The forbidden token is the one that plain text has third and that is drafted; and one that is
// forced.
TEST(LosslessSampling, ABiasForbidsWhatIsDraftedAndForcesWhatIsNot) {
  const Engine engine = toy_engine(kToy);
  Request request{.prompt = {3, 1, 4}, .max_tokens = 80};
  const Tokens unbiased = plain_answer(engine, request).tokens;
  for (const double forbidding : {-100.0, -kInf}) {
    request.sampling.logit_bias = {{unbiased[2], forbidding}};
    const Tokens plain = plain_answer(engine, request).tokens;
    EXPECT_EQ(std::count(plain.begin(), plain.end(), unbiased[2]), 0);
    EXPECT_EQ(answer(engine, scripted(request, unbiased, 5)).tokens, plain);
  }
  request.sampling.logit_bias = {{250, 100}};
  EXPECT_EQ(answer(engine, scripted(request, unbiased, 5)).tokens, Tokens(80, 250));
}

TEST(LosslessSampling, AnEndTokenThatIsForbiddenEndsNothingWhereItIsDrafted) {
  const Tokens free =
      plain_answer(toy_engine(kToy), {.prompt = {3, 1, 4}, .max_tokens = 60}).tokens;
  const Engine engine = toy_engine(kToy, {free[4]});
  Request request{.prompt = {3, 1, 4}, .max_tokens = 60};
  ASSERT_LE(plain_answer(engine, request).tokens.size(), 5u);
  request.sampling = {.logit_bias = {{free[4], -kInf}}, .temperature = 0.8};
  const Tokens plain = plain_answer(engine, request).tokens;
  ASSERT_EQ(plain.size(), 60u);
  Tokens script = plain;
  for (size_t i = 2; i < script.size(); i += 3) script[i] = free[4];
  EXPECT_EQ(answer(engine, scripted(request, script, 5)).tokens, plain);
}

// The chosen token has its own entry, of raw logits, among the five or not.
TEST(LosslessSampling, LogprobsAreThoseOfRawLogits) {
  const Engine engine = toy_engine(kToy);
  Request request{.prompt = {3, 1, 4}, .max_tokens = 60, .logprobs = 5};
  request.sampling = {.repetition_penalty = 1.5, .logit_bias = {{5, 2}}, .temperature = 1};
  const Answer plain = plain_answer(engine, request);
  const Answer drafted = answer(engine, scripted(request, spoilt(plain.tokens, 4), 5));
  // The same ids, forced: a greedy run whose biases leave no choice would not have the same
  // penalties, so they are forced one at a time.
  ASSERT_EQ(plain.logprobs.size(), 60u);
  int outside = 0;
  for (size_t i = 0; i < 60; ++i) {
    Request forced{.prompt = request.prompt, .max_tokens = 1, .logprobs = 5};
    forced.prompt.insert(forced.prompt.end(), plain.tokens.begin(), plain.tokens.begin() + i);
    forced.sampling.logit_bias = {{plain.tokens[i], 1000}};
    const TokenLogprob wanted = plain_answer(engine, forced).logprobs[0];
    for (const Answer* got : {&plain, &drafted}) {
      EXPECT_EQ(got->logprobs[i].id, wanted.id);
      EXPECT_EQ(got->logprobs[i].logprob, wanted.logprob);
      EXPECT_EQ(got->logprobs[i].top, wanted.top);
    }
    const auto& top = wanted.top;
    outside += std::none_of(top.begin(), top.end(),
                            [&](const auto& entry) { return entry.first == wanted.id; });
  }
  EXPECT_GT(outside, 5);
}

TEST(LosslessSampling, SeedsRepeatAndDiffer) {
  const Engine engine = toy_engine(kToy);
  const auto text = [&](uint64_t seed) {
    return answer(engine, {.prompt = {3, 1, 4},
                           .max_tokens = 80,
                           .depth = 4,
                           .sampling = {.temperature = 1, .seed = seed}})
        .tokens;
  };
  const Tokens first = text(42);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(text(42), first);
  EXPECT_NE(text(43), first);
}

TEST(LosslessSampling, NeighboursAndReusedPrefixesChangeNothing) {
  std::vector<Tokens> alone;
  std::vector<Request> requests;
  const auto options = all_options();
  for (size_t i = 0; i < options.size(); ++i) {
    Request request{.prompt = {3, 1, 4, static_cast<TokenId>(i % 3)},
                    .max_tokens = 30 + 5 * static_cast<int>(i),
                    .depth = static_cast<int>(i % 5),
                    .drafter = DrafterKind::Lookup,
                    .sampling = options[i].second};
    alone.push_back(plain_answer(toy_engine(kToy), request).tokens);
    requests.push_back(request);
  }
  const Engine engine = toy_engine(kToy);
  for (int again = 0; again < 2; ++again) {  // the second time over prefixes of the first
    std::vector<Generation> generations;
    for (const Request& request : requests) generations.push_back(*engine.start(request));
    std::vector<Generation*> together;
    for (Generation& generation : generations) together.push_back(&generation);
    while (std::any_of(together.begin(), together.end(), [](auto* g) { return !g->done(); }))
      Generation::step_together(together);
    for (size_t i = 0; i < generations.size(); ++i) {
      Tokens tokens;
      for (const EmittedToken& token : generations[i].tokens()) tokens.push_back(token.id);
      EXPECT_EQ(tokens, alone[i]) << options[i].first;
    }
  }
}

TEST(LosslessSampling, WrongSettingsAreRefusedBeforeAnythingRuns) {
  const Engine engine = toy_engine(kToy);
  for (const SamplingOptions& bad :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.top_p = 0},
        SamplingOptions{.logit_bias = {{300, 1}}}}) {
    const auto started = engine.start({.prompt = {1}, .sampling = bad});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::BadUsage);
  }
  const auto banned = [] {
    SamplingOptions options{.temperature = 1};
    for (TokenId id = 0; id < 300; ++id) options.logit_bias.push_back({id, -kInf});
    return options;
  };
  const Answer none = answer(engine, {.prompt = {1, 2}, .sampling = banned()});
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_NE(none.error.find("forbids every token"), std::string::npos) << none.error;
}

// A drafter that scores the vocabulary itself, not quite as the trunk does.
class ScoringDrafter : public Drafter {
 public:
  enum class Noise { Shared, Own, None };
  ScoringDrafter(const ToyModel& model, SamplingOptions options, Noise noise, float error)
      : model_(model), sampler_(drafting(options, noise), 300, best_table()), error_(error) {}

  void begin(std::span<const TokenId> prompt, int capacity) override {
    sampler_.begin(prompt, capacity);
    text_.assign(prompt.begin(), prompt.end());
    workspace_ = *model_.make_workspace(300, 1);
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) override {
    sampler_.commit(tokens);
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }
  int draft(std::span<Draft> out) override {
    Tokens drafts;
    for (Draft& draft : out) {
      Tokens path = text_;
      path.insert(path.end(), drafts.begin(), drafts.end());
      auto state = *model_.make_state(static_cast<int>(path.size()), CacheType::F32);
      Block block(static_cast<int>(path.size()));
      block.reset(0);
      for (const TokenId token : path) block.add(token);
      const TrunkOut trunk = model_.forward(block, *state, LogitRows::Last, *workspace_);
      std::normal_distribution<float> normal;
      for (float& logit : trunk.logits.row(0)) logit += error_ * normal(random_);
      draft.token = sampler_.draw(trunk.logits.row(0), static_cast<int>(path.size()), drafts);
      drafts.push_back(draft.token);
    }
    return static_cast<int>(out.size());
  }

 private:
  static SamplingOptions drafting(SamplingOptions options, Noise noise) {
    if (noise == Noise::Own) options.seed += 1000;
    if (noise == Noise::None) options.temperature = 0;
    return options;
  }
  const ToyModel& model_;
  Sampler sampler_;
  float error_;
  Tokens text_;
  std::unique_ptr<Workspace> workspace_;
  std::mt19937 random_{8};
};

TEST(SharedNoise, RaisesAcceptanceAndChangesNoToken) {
  const ToyModel model(kToy);
  const SamplingOptions sampling{.repetition_penalty = 1.05, .temperature = 0.8, .top_p = 0.98};
  SampledRule rule(sampling, 300, best_table());
  const ToyRunOptions options{.budget = 250, .depth = 2, .rule = &rule};
  const Tokens plain = toy_plain(model, options);
  const auto rounds = [&](ScoringDrafter::Noise noise, float error) {
    ScoringDrafter drafter(model, sampling, noise, error);
    const ToyRun run = toy_run(model, drafter, options);
    EXPECT_EQ(run.tokens, plain);
    return run.rounds.size();
  };
  using Noise = ScoringDrafter::Noise;
  EXPECT_EQ(rounds(Noise::Shared, 0), 83u) << "the trunk's own logits and noise: three a round";
  EXPECT_LT(rounds(Noise::Shared, 0.2f) * 3, rounds(Noise::Own, 0.2f) * 2);
  EXPECT_LT(rounds(Noise::Shared, 0.2f) * 3, rounds(Noise::None, 0.2f) * 2);
}

// --- controls
// -------------------------------------------------------------------------------------

class RowKeyedRule : public AcceptRule {
 public:
  explicit RowKeyedRule(const SamplingOptions& options) : sampler_(options, 300, best_table()) {}

 private:
  TokenId choose(std::span<float> logits, int position, std::span<const TokenId> drafts) override {
    const int row = static_cast<int>(drafts.size());
    return sampler_.draw(logits, position - row + 1000 * row, drafts);
  }
  Sampler sampler_;
};

TEST(LosslessSamplingControl, NoiseKeyedByTheRowForksTheText) {
  const ToyModel model(kToy);
  RowKeyedRule rule({.temperature = 1});
  const ToyRunOptions options{.budget = 60, .rule = &rule};
  const Tokens plain = toy_plain(model, options);
  ScoringDrafter drafter(model, {.temperature = 1}, ScoringDrafter::Noise::Own, 0);
  EXPECT_NE(toy_run(model, drafter, options).tokens, plain);
}

// Penalties that do not see the drafts before a row.
class ForgetfulRule : public AcceptRule {
 public:
  explicit ForgetfulRule(const SamplingOptions& options) : sampler_(options, 300, best_table()) {}
  void begin(std::span<const TokenId> prompt, int capacity) override {
    sampler_.begin(prompt, capacity);
  }
  void commit(std::span<const TokenId> tokens) override { sampler_.commit(tokens); }

 private:
  TokenId choose(std::span<float> logits, int position,
                 std::span<const TokenId> /*drafts*/) override {
    return sampler_.draw(logits, position);
  }
  Sampler sampler_;
};

TEST(LosslessSamplingControl, PenaltiesBlindToDraftsForkTheText) {
  const ToyModel model({.speech = 5, .memory = 2, .levels = 512});
  const SamplingOptions penalty{.frequency_penalty = 0.5};
  ForgetfulRule forgetful(penalty);
  SampledRule right(penalty, 300, best_table());
  ToyRunOptions options{.budget = 120, .rule = &forgetful};
  const Tokens plain = toy_plain(model, options);
  PlaceDrafter drafter(plain, 0);
  EXPECT_NE(toy_run(model, drafter, options).tokens, plain);
  options.rule = &right;
  EXPECT_EQ(toy_plain(model, options), plain) << "without drafts it sees everything";
  EXPECT_EQ(toy_run(model, drafter, options).tokens, plain);
}

}  // namespace
}  // namespace paceline
