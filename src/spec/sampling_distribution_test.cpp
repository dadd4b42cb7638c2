// What is drawn has the distribution that the options ask for: chi-square against the softmax,
// seeds fixed. Limits are those that chance exceeds once in 1,000 times.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/choose.h"
#include "kernels/reference.h"
#include "kernels/sampling.h"
#include "spec/sampling.h"
#include "tests/draft_lists.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
using Probabilities = std::vector<double>;
constexpr int kDraws = 100'000;

const KernelTable& best_table() { return *kernel_tables().back(); }

std::vector<float> logits_of(const Probabilities& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

double chi_square(std::span<const int> counts, const Probabilities& wanted, int draws) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = wanted[i] * draws;
    if (expected == 0 && counts[i] > 0) return std::numeric_limits<double>::infinity();
    if (expected > 0) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

// Wilson and Hilferty 1931.
double limit(int cells) {
  const double n = cells - 1;
  if (n < 1) return 0;
  const double cube = 1 - 2 / (9 * n) + 3.09 * std::sqrt(2 / (9 * n));
  return n * cube * cube * cube;
}

testing::AssertionResult fits(std::span<const int> counts, const Probabilities& wanted,
                              int draws = kDraws) {
  const int cells =
      static_cast<int>(std::count_if(wanted.begin(), wanted.end(), [](double p) { return p > 0; }));
  const double found = chi_square(counts, wanted, draws);
  if (found <= limit(cells)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "chi-square " << found << ", limit " << limit(cells);
}

std::vector<int> counts_of(const SamplingOptions& options, std::vector<float> logits,
                           const Tokens& prompt = {}, const Tokens& output = {}) {
  Sampler sampler(options, static_cast<int>(logits.size()), best_table());
  sampler.begin(prompt, 100);
  sampler.commit(output);
  std::vector<int> counts(logits.size());
  for (int position = 0; position < kDraws; ++position) ++counts[sampler.draw(logits, position)];
  return counts;
}

Probabilities normalised(Probabilities p) {
  double sum = 0;
  for (const double value : p) sum += value;
  for (double& value : p) value /= sum;
  return p;
}

// p to the power 1 / temperature, so that 1 leaves it.
Probabilities tempered(Probabilities p, double temperature) {
  for (double& value : p) value = std::pow(value, 1 / temperature);
  return normalised(p);
}

const Probabilities kTen = normalised({.22, .01, .19, .13, .04, .17, .02, .11, .08, .03});

TEST(Distribution, IsTheSoftmaxAtEachTemperature) {
  for (const double temperature : {0.3, 0.5, 0.8, 1.0, 1.5, 4.0}) {
    const auto counts = counts_of({.temperature = temperature, .seed = 5}, logits_of(kTen));
    EXPECT_TRUE(fits(counts, tempered(kTen, temperature))) << temperature;
  }
}

TEST(Distribution, OverAWholeVocabularyOfManyGroups) {
  // 4,096 ids, sixteen cells of 256 ids each, of different weight.
  std::vector<float> logits(4096);
  Probabilities wanted(16);
  for (int id = 0; id < 4096; ++id) {
    const double p = 1 + id % 7 + (id / 256) * 0.5;
    logits[id] = static_cast<float>(std::log(p)) + 3;
    wanted[id / 256] += p;
  }
  const auto counts = counts_of({.temperature = 1, .seed = 6}, logits);
  std::vector<int> cells(16);
  for (int id = 0; id < 4096; ++id) cells[id / 256] += counts[id];
  EXPECT_TRUE(fits(cells, normalised(wanted)));
}

TEST(Distribution, OfWhatEachFilterLeaves) {
  const auto kept = [](std::initializer_list<int> ids) {
    Probabilities p(kTen.size());
    for (const int id : ids) p[id] = kTen[id];
    return p;
  };
  const auto logits = logits_of(kTen);
  EXPECT_TRUE(fits(counts_of({.temperature = 1, .top_k = 3}, logits), normalised(kept({0, 2, 5}))));
  EXPECT_TRUE(fits(counts_of({.temperature = 1, .top_p = 0.75}, logits),
                   normalised(kept({0, 2, 5, 3, 7}))));  // .22 .41 .58 .71 .82
  EXPECT_TRUE(fits(counts_of({.temperature = 1, .min_p = 0.45}, logits),
                   normalised(kept({0, 2, 5, 3, 7}))));  // above .099
  // Together: of five, .82 at 1.3, the first that reach 0.8; of these 0.7 of the largest.
  const Probabilities five = tempered(kept({0, 2, 5, 3, 7}), 1.3);
  ASSERT_LT(five[0] + five[2] + five[5], 0.8);
  ASSERT_GT(five[0] + five[2] + five[5] + five[3], 0.8);
  ASSERT_LT(five[3], 0.7 * five[0]);
  ASSERT_GT(five[5], 0.7 * five[0]);
  EXPECT_TRUE(fits(counts_of({.temperature = 1.3, .top_k = 5, .top_p = 0.8, .min_p = 0.7}, logits),
                   tempered(kept({0, 2, 5}), 1.3)));
}

TEST(Distribution, OfWhatPenaltiesAndBiasesMake) {
  const std::vector<float> logits = {1, 2, 3, -1, 0.5f};
  const auto softmax = [](std::vector<double> l) {
    for (double& value : l) value = std::exp(value);
    return normalised(l);
  };
  const Tokens prompt = {1, 3};
  const Tokens output = {2, 2, 0};
  EXPECT_TRUE(fits(counts_of({.repetition_penalty = 1.3, .temperature = 1}, logits, prompt, output),
                   softmax({1 / 1.3, 2 / 1.3, 3 / 1.3, -1.3, 0.5})));
  EXPECT_TRUE(fits(counts_of({.presence_penalty = 0.8, .temperature = 1}, logits, prompt, output),
                   softmax({0.2, 2, 2.2, -1, 0.5})));
  EXPECT_TRUE(fits(counts_of({.frequency_penalty = 0.5, .temperature = 1}, logits, prompt, output),
                   softmax({0.5, 2, 2, -1, 0.5})));
  EXPECT_TRUE(fits(counts_of({.logit_bias = {{3, 2.5}, {2, -1}}, .temperature = 1}, logits),
                   softmax({1, 2, 2, 1.5, 0.5})));
  EXPECT_TRUE(fits(counts_of({.repetition_penalty = 1.3,
                              .frequency_penalty = 0.5,
                              .presence_penalty = 0.8,
                              .logit_bias = {{4, 1}},
                              .temperature = 0.7},
                             logits, prompt, output),
                   softmax({(1 / 1.3 - 1.3) / 0.7, 2 / 1.3 / 0.7, (3 / 1.3 - 1.8) / 0.7, -1.3 / 0.7,
                            1.5 / 0.7})));
}

// --- drafts: the same distribution, and pairs of tokens are independent
// ---------------------------

const Probabilities kFour = {.5, .3, .15, .05};

// Rows of the same logits, whatever came before: every token of the text is a draw from kFour.
// `draft` says what is drafted for a position.
template <class Rule, class DraftAt>
Tokens text_with_drafts(Rule& rule, int depth, int n_tokens, DraftAt draft_at) {
  const auto logits = logits_of(kFour);
  std::vector<float> rows;
  for (int row = 0; row <= depth; ++row) rows.insert(rows.end(), logits.begin(), logits.end());
  rule.begin({}, n_tokens + depth + 1);
  Tokens text = {0};
  while (static_cast<int>(text.size()) < n_tokens) {
    const int first_pos = static_cast<int>(text.size()) - 1;
    Tokens drafts;
    for (int d = 1; d <= depth; ++d) drafts.push_back(draft_at(first_pos + d));
    const auto accepted = rule.accept(chain_of(drafts), {rows.data(), depth + 1, 4}, first_pos);
    EXPECT_TRUE(accepted);
    Tokens emitted(drafts.begin(), drafts.begin() + accepted->n_drafts);
    emitted.push_back(accepted->next);
    rule.commit(emitted);
    text.insert(text.end(), emitted.begin(), emitted.end());
  }
  text.resize(n_tokens);
  return text;
}

std::vector<int> token_counts(const Tokens& text) {
  std::vector<int> counts(4);
  for (const TokenId token : text) ++counts[token];
  return counts;
}

// Of tokens `apart` places from each other.
testing::AssertionResult pairs_fit(const Tokens& text, int apart = 1) {
  std::vector<int> counts(16);
  for (size_t i = apart; i < text.size(); ++i) ++counts[text[i - apart] * 4 + text[i]];
  Probabilities wanted;
  for (const double a : kFour)
    for (const double b : kFour) wanted.push_back(a * b);
  return fits(counts, wanted, static_cast<int>(text.size()) - apart);
}

TEST(Distribution, IsTheTrunksOwnWhateverIsDrafted) {
  const SamplingOptions options{.temperature = 1, .seed = 11};
  SampledRule rule(options, 4, best_table());
  const Tokens plain = text_with_drafts(rule, 0, kDraws, [](int) { return 0; });
  EXPECT_TRUE(fits(token_counts(plain), kFour));
  for (const int apart : {1, 2, 5}) EXPECT_TRUE(pairs_fit(plain, apart)) << apart;

  // Drafts from q = (.1, .2, .3, .4), and always the same token: the most, the least likely.
  Sampler q({.temperature = 1, .seed = 99}, 4, best_table());
  auto q_logits = logits_of({.1, .2, .3, .4});
  const auto from_q = [&](int position) { return q.draw(q_logits, position); };
  for (const int depth : {1, 3, 8}) {
    EXPECT_EQ(text_with_drafts(rule, depth, kDraws, from_q), plain);
    for (const TokenId always : {0, 3})
      EXPECT_EQ(text_with_drafts(rule, depth, kDraws, [&](int) { return always; }), plain);
  }
}

TEST(Distribution, ADraftStandsWithItsProbability) {
  SampledRule rule({.temperature = 1, .seed = 12}, 4, best_table());
  const auto logits = logits_of(kFour);
  for (const TokenId draft : {0, 3}) {
    std::vector<int> stood(2);
    std::vector<int> instead(4);
    for (int position = 0; position < kDraws; ++position) {
      std::vector<float> rows = logits;
      rows.insert(rows.end(), logits.begin(), logits.end());
      const auto accepted = rule.accept(chain_of({draft}), {rows.data(), 2, 4}, position);
      ASSERT_TRUE(accepted);
      ++stood[accepted->n_drafts];
      if (accepted->n_drafts == 0) ++instead[accepted->next];
    }
    EXPECT_TRUE(fits(stood, {1 - kFour[draft], kFour[draft]}));
    Probabilities rest = kFour;  // the replacement: p without the draft
    rest[draft] = 0;
    EXPECT_TRUE(fits(instead, normalised(rest), stood[0]));
  }
}

TEST(Distribution, DrawsWithinABlockAreIndependent) {
  // Depth 1, all drafts right: every block holds two draws; 20,000 blocks.
  const SamplingOptions options{.temperature = 1, .seed = 13};
  SampledRule rule(options, 4, best_table());
  Sampler same(options, 4, best_table());
  auto logits = logits_of(kFour);
  const auto right = [&](int position) { return same.draw(logits, position); };
  const Tokens text = text_with_drafts(rule, 1, 40'000, right);
  std::vector<int> counts(16);
  for (size_t i = 1; i + 1 < text.size(); i += 2) ++counts[text[i] * 4 + text[i + 1]];
  Probabilities wanted;
  for (const double a : kFour)
    for (const double b : kFour) wanted.push_back(a * b);
  EXPECT_TRUE(fits(counts, wanted, 19'999));
}

// --- controls: what these tests must notice
// -------------------------------------------------------

TEST(DistributionControl, ATemperatureOffByATwentiethIsNoticed) {
  EXPECT_FALSE(fits(counts_of({.temperature = 1.05, .seed = 5}, logits_of(kTen)), kTen));
}

TEST(DistributionControl, UniformNoiseInPlaceOfGumbelsIsNoticed) {
  const auto logits = logits_of(kTen);
  std::vector<int> counts(kTen.size());
  for (int position = 0; position < kDraws; ++position) {
    const NoiseKey key = noise_key(5, position);
    int best = 0;
    float best_score = -1e9f;
    for (size_t id = 0; id < logits.size(); ++id) {
      const auto bits = reference::noise_bits(key, static_cast<uint32_t>(id));
      const float score = logits[id] + static_cast<float>(bits) * 0x1p-32f * 4;
      if (score > best_score) {
        best_score = score;
        best = static_cast<int>(id);
      }
    }
    ++counts[best];
  }
  EXPECT_FALSE(fits(counts, kTen));
}

// Noise keyed by the row of the block in place of the position.
class RowKeyedRule : public AcceptRule {
 public:
  explicit RowKeyedRule(const SamplingOptions& options) : sampler_(options, 4, best_table()) {}

 private:
  TokenId choose(std::span<float> logits, int /*position*/,
                 std::span<const TokenId> drafts) override {
    return sampler_.draw(logits, static_cast<int>(drafts.size()), drafts);
  }
  Sampler sampler_;
};

TEST(DistributionControl, NoiseKeyedByTheRowIsNoticed) {
  RowKeyedRule rule({.temperature = 1, .seed = 11});
  const Tokens plain = text_with_drafts(rule, 0, kDraws, [](int) { return 0; });
  EXPECT_FALSE(fits(token_counts(plain), kFour));
  EXPECT_FALSE(pairs_fit(plain));
  const Tokens with_drafts = text_with_drafts(rule, 8, kDraws, [&](int) { return plain[1]; });
  EXPECT_NE(with_drafts, plain);
}

}  // namespace
}  // namespace paceline
