// The sampler against plain loops, and the rules of its filters one by one.
#include "spec/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/choose.h"
#include "tests/draft_lists.h"
#include "tests/plain_sampling.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kDoubleInf = std::numeric_limits<double>::infinity();

const KernelTable& best_table() { return *kernel_tables().back(); }

// Logits of these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// Every token that is drawn at some of many positions, ascending.
Tokens drawn_tokens(const SamplingOptions& options, std::vector<float> logits,
                    const Tokens& prompt = {}, const Tokens& output = {}) {
  Sampler sampler(options, static_cast<int>(logits.size()), best_table());
  sampler.begin(prompt, 100);
  sampler.commit(output);
  std::vector<int> times(logits.size());
  for (int position = 0; position < 3000; ++position) ++times[sampler.draw(logits, position)];
  Tokens tokens;
  for (size_t id = 0; id < times.size(); ++id)
    if (times[id] > 0) tokens.push_back(static_cast<TokenId>(id));
  return tokens;
}

SamplingOptions random_options(std::mt19937& random, int vocab_size) {
  const auto one_of = [&](std::initializer_list<double> values) {
    return *(values.begin() + random() % values.size());
  };
  SamplingOptions options;
  options.temperature = one_of({0, 1e-6, 0.3, 0.8, 1, 1.5, 30, 1e6});
  options.top_k = static_cast<int>(one_of({0, 0, 1, 2, 5, 40, 300, 4000}));
  options.top_p = one_of({1, 1, 1e-9, 0.1, 0.5, 0.9, 0.99, 0.999999});
  options.min_p = one_of({0, 0, 1e-6, 0.05, 0.3, 1});
  options.repetition_penalty = one_of({1, 1, 0.5, 1.3, 1000});
  options.frequency_penalty = one_of({0, 0, 0.5, -0.7});
  options.presence_penalty = one_of({0, 0, 0.8, -2});
  if (random() % 3 == 0) {
    for (int i = 0; i < 5; ++i) {
      const auto id = static_cast<TokenId>(i + random() % 7 * 5);
      if (id < vocab_size)
        options.logit_bias.push_back({id, one_of({-kDoubleInf, -100, 3, 100, 1e30})});
    }
  }
  options.seed = random();
  return options;
}

std::vector<float> random_logits(std::mt19937& random, int n) {
  std::normal_distribution<float> normal;
  const auto kind = random() % 4;
  std::vector<float> logits(n);
  for (float& logit : logits) {
    logit = kind == 0   ? 4 * normal(random)
            : kind == 1 ? static_cast<float>(random() % 3) - 1  // ties, zeros of either sign
            : kind == 2 ? 0.01f * normal(random)
                        : std::ldexp(normal(random), static_cast<int>(random() % 12));
    if (kind == 1 && logit == 0 && random() % 2 == 0) logit = -0.0f;
    if (kind == 3 && random() % 5 == 0) logit = random() % 2 == 0 ? kNan : -kInf;
  }
  return logits;
}

TEST(Sampler, DrawsWhatPlainLoopsDrawAndLeavesTheRowAsItWas) {
  std::mt19937 random(1);
  constexpr int kVocabularies[] = {1, 2, 17, 64, 65, 300, 1025, 5000};
  for (int run = 0; run < 800; ++run) {
    const int n = kVocabularies[run % std::size(kVocabularies)];
    const SamplingOptions options = random_options(random, n);
    ASSERT_TRUE(check_sampling(options, n));
    const auto some = [&](int count) {
      Tokens tokens(random() % count);
      for (TokenId& token : tokens) token = static_cast<TokenId>(random() % std::min(n, 30));
      return tokens;
    };
    const Tokens prompt = some(20);
    const Tokens output = some(20);
    const Tokens drafts = some(5);
    Tokens behind = output;
    behind.insert(behind.end(), drafts.begin(), drafts.end());
    const auto logits = random_logits(random, n);
    const int position = static_cast<int>(random() % 10000);
    const TokenId wanted = plain_sample(options, logits, prompt, behind, position);
    for (const KernelTable* table : kernel_tables()) {
      SCOPED_TRACE(std::string(table->variant) + ", run " + std::to_string(run));
      Sampler sampler(options, n, *table);
      sampler.begin({}, 50);
      sampler.commit(some(9));  // of a text before, forgotten
      sampler.begin(prompt, 50);
      sampler.commit(output);
      auto row = logits;
      EXPECT_EQ(sampler.draw(row, position, drafts), wanted);
      EXPECT_EQ(std::memcmp(row.data(), logits.data(), n * sizeof(float)), 0);
      EXPECT_EQ(sampler.draw(row, position, drafts), wanted) << "drafts were forgotten";
    }
  }
}

TEST(Sampler, TopKKeepsTheMostLikelyTheLowestIdsOfEquals) {
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 2}, logits_of({.1, .4, .2, .3})),
            (Tokens{1, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 3}, {1, 2, 1, 2, 1, 1}), (Tokens{0, 1, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 1}, {3, 3, 3}), Tokens{0});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 9}, {3, 3, 3}), (Tokens{0, 1, 2}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 2}, {-kInf, 3, kNan}), Tokens{1});
}

TEST(Sampler, TopPKeepsTheFewestThatReachItTheLowestIdsOfEquals) {
  const auto p = logits_of({.05, .5, .15, .3});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.49}, p), Tokens{1});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.51}, p), (Tokens{1, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.79}, p), (Tokens{1, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.81}, p), (Tokens{1, 2, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 1e-9}, p), Tokens{1});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.5}, {2, 2, 2, 2}), (Tokens{0, 1}));
}

TEST(Sampler, MinPIsAShareOfTheLargest) {
  const auto p = logits_of({.05, .5, .15, .3});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .min_p = 0.59}, p), (Tokens{1, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .min_p = 0.61}, p), Tokens{1});
  EXPECT_EQ(drawn_tokens({.temperature = 1, .min_p = 0.29}, p), (Tokens{1, 2, 3}));
  EXPECT_EQ(drawn_tokens({.temperature = 1, .min_p = 1}, {1, 3, 3, 2}), (Tokens{1, 2}));
}

// Each line keeps other tokens if its two steps are exchanged.
TEST(Sampler, TheStepsComeInTheirOrder) {
  const auto p = logits_of({.4, .3, .2, .1});
  // Top-k, then top-p of what is left: 0.4 of 0.7 reaches a half. Exchanged: both.
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_k = 2, .top_p = 0.5}, p), Tokens{0});
  // Top-p, then min-p: 0.9 is the first sum above 0.75. Exchanged: 0.7 of 0.9 is enough.
  EXPECT_EQ(drawn_tokens({.temperature = 1, .top_p = 0.75, .min_p = 0.5}, p), (Tokens{0, 1, 2}));
  // Temperature, then top-p: squared, 0.16 of 0.30 is above a half. Exchanged: two.
  EXPECT_EQ(drawn_tokens({.temperature = 0.5, .top_p = 0.5}, p), Tokens{0});
  // Temperature, then min-p: (0.2 / 0.4)^2 is below 0.3. Exchanged: 0 to 2.
  EXPECT_EQ(drawn_tokens({.temperature = 0.5, .min_p = 0.3}, p), (Tokens{0, 1}));
  // Bias, then top-k: id 3 comes in. Exchanged: it is out before it is lifted.
  EXPECT_EQ(drawn_tokens({.logit_bias = {{3, 1.2}}, .temperature = 1, .top_k = 2}, p),
            (Tokens{0, 3}));
  // Penalties, then bias: (2 / 2) + 1.5 = 2.5 against 2.25. Exchanged: 1.75.
  EXPECT_EQ(drawn_tokens({.repetition_penalty = 2, .logit_bias = {{1, 1.5}}}, {2.25, 2}, {1}),
            Tokens{1});
  // Repetition, then presence: 4 / 2 - 2 = 0 against 0.5. Exchanged: (4 - 2) / 2 = 1.
  EXPECT_EQ(drawn_tokens({.repetition_penalty = 2, .presence_penalty = 2}, {0.5, 4}, {}, {1}),
            Tokens{0});
}

TEST(Sampler, PenaltiesFollowTheText) {
  const auto greedy = [](const SamplingOptions& options, std::vector<float> logits,
                         const Tokens& prompt, const Tokens& output, const Tokens& drafts = {}) {
    Sampler sampler(options, static_cast<int>(logits.size()), best_table());
    sampler.begin(prompt, 20);
    sampler.commit(output);
    return sampler.draw(logits, 9, drafts);
  };
  const std::vector<float> logits = {1, 3, 2, -1};
  EXPECT_EQ(greedy({}, logits, {1}, {1}), 1);
  // Repetition looks at the prompt, the others do not.
  EXPECT_EQ(greedy({.repetition_penalty = 2}, logits, {1}, {}), 2);
  EXPECT_EQ(greedy({.presence_penalty = 1.5}, logits, {1}, {}), 1);
  EXPECT_EQ(greedy({.presence_penalty = 1.5}, logits, {}, {1}), 2);
  // Presence counts a token once, frequency each time.
  EXPECT_EQ(greedy({.presence_penalty = 0.4}, logits, {}, {1, 1, 1}), 1);
  EXPECT_EQ(greedy({.frequency_penalty = 0.4}, logits, {}, {1, 1}), 1);
  EXPECT_EQ(greedy({.frequency_penalty = 0.4}, logits, {}, {1, 1, 1}), 2);
  // A draft before the row is output to it.
  EXPECT_EQ(greedy({.frequency_penalty = 0.4}, logits, {}, {1, 1}, {1}), 2);
  EXPECT_EQ(greedy({.repetition_penalty = 2}, logits, {}, {}, {1}), 2);
  // A penalty makes what is below zero less likely too.
  EXPECT_EQ(greedy({.repetition_penalty = 3}, {-1, -2}, {0}, {}), 1);
  EXPECT_EQ(greedy({.repetition_penalty = 1.9}, {-1, -2}, {0}, {}), 0);
}

TEST(Sampler, ABiasForbidsAndForces) {
  EXPECT_EQ(drawn_tokens({.logit_bias = {{1, -kDoubleInf}}, .temperature = 1}, {1, 9, 1}),
            (Tokens{0, 2}));
  EXPECT_EQ(drawn_tokens({.logit_bias = {{2, 100}}, .temperature = 1}, {1, 9, 1}), Tokens{2});
  EXPECT_EQ(drawn_tokens({.logit_bias = {{1, -100}}}, {1, 9, 2}), Tokens{2});
}

TEST(Sampler, ARowWithoutAFiniteMaximumHasNoToken) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature, .top_k = 2, .top_p = 0.5}, 3, best_table());
    for (std::vector<float> row :
         {std::vector<float>{kNan, kNan, kNan}, {-kInf, -kInf, kNan}, {1, kInf, 2}}) {
      EXPECT_EQ(sampler.draw(row, 5), -1);
    }
    Sampler forbidding({.logit_bias = {{0, -kDoubleInf}}, .temperature = temperature}, 1,
                       best_table());
    std::vector<float> row = {5};
    EXPECT_EQ(forbidding.draw(row, 5), -1);
    SampledRule rule({.temperature = temperature}, 3, best_table());
    std::vector<float> rows = {kNan, kNan, kNan};
    const auto got = rule.accept({}, {rows.data(), 1, 3}, 100);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message.find("position 100"), std::string::npos) << got.error().message;
  }
}

TEST(Sampler, ATokenDependsOnSeedAndPositionAndOnNothingBefore) {
  std::mt19937 random(3);
  auto row = random_logits(random, 300);
  for (float& logit : row) logit = 0.1f * static_cast<float>(random() % 20);
  const auto text = [&](uint64_t seed, int first) {
    Sampler sampler({.temperature = 1, .seed = seed}, 300, best_table());
    sampler.begin({}, 100);
    Tokens tokens;
    for (int position = first; position < 50; ++position) {
      tokens.push_back(sampler.draw(row, position));
      sampler.commit({&tokens.back(), 1});
    }
    return tokens;
  };
  const Tokens all = text(42, 0);
  const Tokens later = text(42, 20);
  EXPECT_EQ(Tokens(all.begin() + 20, all.end()), later);
  EXPECT_NE(text(43, 0), all);
}

TEST(SampledRule, ADraftStandsIffItIsTheTokenThatIsDrawn) {
  std::mt19937 random(4);
  const SamplingOptions options{.repetition_penalty = 1.2,
                                .frequency_penalty = 0.3,
                                .temperature = 0.9,
                                .top_k = 8,
                                .top_p = 0.95,
                                .seed = 7};
  for (int run = 0; run < 300; ++run) {
    const int n_drafts = static_cast<int>(random() % 5);
    std::vector<float> rows((n_drafts + 1) * 12);
    for (float& logit : rows) logit = static_cast<float>(random() % 100) / 40;
    const Tokens prompt = {1, 2, 3};
    const Tokens output = {static_cast<TokenId>(random() % 12)};
    const int first_pos = static_cast<int>(random() % 500);
    Tokens drafts;
    Tokens text = output;
    Accepted wanted{.n_drafts = n_drafts};
    for (int row = 0; row <= n_drafts; ++row) {
      const std::span<const float> logits(&rows[row * 12], 12);
      const TokenId token = plain_sample(options, logits, prompt, text, first_pos + row + 1);
      const bool right = random() % 4 != 0;
      if (row < n_drafts) drafts.push_back(right ? token : (token + 1) % 12);
      wanted.next = token;
      if (row == n_drafts || right) {
        text.push_back(token);
        continue;
      }
      wanted.n_drafts = row;
      while (static_cast<int>(drafts.size()) < n_drafts) drafts.push_back(0);
      break;
    }
    SampledRule rule(options, 12, best_table());
    rule.begin(prompt, 20);
    rule.commit(output);
    const auto got = rule.accept(chain_of(drafts), {rows.data(), n_drafts + 1, 12}, first_pos);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->n_drafts, wanted.n_drafts);
    EXPECT_EQ(got->next, wanted.next);
  }
}

TEST(SamplingOptions, AreCheckedWithASentenceThatNamesTheField) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const char* field, const SamplingOptions& options) {
    const auto ok = check_sampling(options, 50);
    ASSERT_FALSE(ok) << field;
    EXPECT_EQ(ok.error().code, ErrorCode::BadUsage);
    EXPECT_EQ(ok.error().message.rfind(field, 0), 0u) << ok.error().message;
  };
  for (const double bad : {-1.0, 1e-7, 1e7, nan, kDoubleInf})
    refused("temperature", {.temperature = bad});
  refused("top_k", {.top_k = -1});
  for (const double bad : {0.0, -0.1, 1.5, nan}) refused("top_p", {.top_p = bad});
  for (const double bad : {-0.1, 1.5, nan}) refused("min_p", {.min_p = bad});
  for (const double bad : {0.0, -1.0, 1e9, nan})
    refused("repetition_penalty", {.repetition_penalty = bad});
  for (const double bad : {1e9, -1e9, nan, kDoubleInf}) {
    refused("presence_penalty", {.presence_penalty = bad});
    refused("frequency_penalty", {.frequency_penalty = bad});
  }
  for (const double bad : {1e31, nan, kDoubleInf})
    refused("logit_bias", {.logit_bias = {{3, bad}}});
  for (const TokenId bad : {-1, 50}) refused("logit_bias", {.logit_bias = {{bad, 1}}});
  refused("logit_bias", {.logit_bias = {{3, 1}, {4, 1}, {3, 2}}});
  EXPECT_TRUE(check_sampling({}, 50));
  EXPECT_TRUE(check_sampling({.logit_bias = {{0, -kDoubleInf}, {49, 1e30}}, .top_p = 1e-300}, 50));
}

}  // namespace
}  // namespace paceline
