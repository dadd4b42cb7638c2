// The kernels of sampling against their definitions, by bytes, and the noise itself: its values,
// its distribution, and that nothing hangs together that should not.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/reference.h"
#include "kernels/sampling.h"
#include "kernels/test_support.h"

namespace paceline {
namespace {

bool same_float(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Rows of every kind: like a model's, flat, with ties, far apart, with what is no number.
std::vector<float> random_row(std::mt19937& random, int n) {
  std::normal_distribution<float> normal;
  const auto kind = random() % 5;
  std::vector<float> row(n);
  for (float& logit : row) {
    logit = kind == 0   ? 4.0f * normal(random)
            : kind == 1 ? 0.01f * normal(random)
            : kind == 2 ? static_cast<float>(random() % 3)
                        : std::ldexp(normal(random), static_cast<int>(random() % 40) - 20);
    if (kind == 4 && random() % 4 == 0) logit = random() % 2 == 0 ? kNan : -kInf;
  }
  row[random() % row.size()] = 1.0f;  // one of them is finite
  return row;
}

float top_of(const std::vector<float>& row) {
  float top = -kInf;
  for (const float logit : row) top = logit > top ? logit : top;
  return top;
}

DrawArgs random_args(std::mt19937& random, const std::vector<float>& row) {
  constexpr float kTemperatures[] = {0.01f, 0.5f, 0.8f, 1.0f, 1.7f, 100.0f};
  DrawArgs args;
  args.row = {top_of(row), 1.0f / kTemperatures[random() % 6]};
  args.key = noise_key(random(), static_cast<int64_t>(random() % 100000));
  if (random() % 2 == 0) {  // a limit that some id meets exactly
    const float x = reference::scaled(row[random() % row.size()], args.row);
    if (!std::isnan(x)) args.least = x;
    if (random() % 2 == 0) args.last_tie = static_cast<int>(random() % row.size());
  }
  return args;
}

constexpr int kSizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 300, 1023, 1024, 1025, 4101};

TEST(SamplingKernels, DrawEqualsItsDefinitionWhichLooksAtEveryNoise) {
  std::mt19937 random(1);
  for (int run = 0; run < 600; ++run) {
    const auto row = random_row(random, kSizes[run % std::size(kSizes)]);
    const int n = static_cast<int>(row.size());
    const DrawArgs args = random_args(random, row);
    const Drawn wanted = reference::draw(row, args);
    for (const KernelTable* table : all_tables()) {
      SCOPED_TRACE(std::string(table->variant) + " run " + std::to_string(run));
      Drawn whole;
      table->draw(row.data(), 0, n, args, &whole);
      EXPECT_EQ(whole.id, wanted.id);
      EXPECT_TRUE(same_float(whole.score, wanted.score)) << whole.score << " " << wanted.score;
      // In two parts, the later one first.
      const int cut = static_cast<int>(random() % (n / 16 + 1)) * 16;
      Drawn parts;
      table->draw(row.data(), cut, n, args, &parts);
      table->draw(row.data(), 0, cut, args, &parts);
      EXPECT_EQ(parts.id, wanted.id);
      EXPECT_TRUE(same_float(parts.score, wanted.score));
    }
  }
}

TEST(SamplingKernels, EqualScoresGoToTheLowestId) {
  // Beyond 2^24 a float no longer notices the noise.
  std::vector<float> row(100, -std::ldexp(1.0f, 40));
  DrawArgs args{.row = {0.0f, 1.0f}, .key = noise_key(1, 1)};
  row[70] = row[33] = row[99] = -std::ldexp(1.0f, 39);
  for (const KernelTable* table : all_tables()) {
    for (const int first : {96, 64, 48, 32, 0}) {  // the lowest id comes last
      Drawn best;
      table->draw(row.data(), first, 100, args, &best);
      if (first > 0) table->draw(row.data(), 0, first, args, &best);
      EXPECT_EQ(best.id, 33) << table->variant;
    }
  }
  EXPECT_EQ(reference::draw(row, args).id, 33);
}

TEST(SamplingKernels, WhatIsImpossibleIsNeverDrawn) {
  std::vector<float> row(40, -kInf);
  for (const KernelTable* table : all_tables()) {
    Drawn best;
    table->draw(row.data(), 0, 40, {.row = {0.0f, 1.0f}}, &best);
    EXPECT_EQ(best.id, -1) << table->variant;
  }
  row[7] = -1e30f;
  row[8] = kNan;
  for (const KernelTable* table : all_tables()) {
    for (int position = 0; position < 200; ++position) {
      Drawn best;
      table->draw(row.data(), 0, 40, {.row = {0.0f, 1.0f}, .key = noise_key(1, position)}, &best);
      EXPECT_EQ(best.id, 7) << table->variant;
    }
  }
}

TEST(SamplingKernels, GroupMaximaEqualTheirDefinition) {
  std::mt19937 random(2);
  for (int run = 0; run < 140; ++run) {
    const auto row = random_row(random, kSizes[run % std::size(kSizes)]);
    const size_t groups = (row.size() + kDrawGroup - 1) / kDrawGroup;
    std::vector<float> wanted(groups, -kInf);
    for (size_t i = 0; i < row.size(); ++i)
      wanted[i / kDrawGroup] = row[i] > wanted[i / kDrawGroup] ? row[i] : wanted[i / kDrawGroup];
    for (const KernelTable* table : all_tables()) {
      std::vector<float> got(groups + 1, 5.0f);
      table->group_max(row.data(), static_cast<int>(row.size()), got.data());
      for (size_t g = 0; g < groups; ++g) EXPECT_EQ(got[g], wanted[g]) << table->variant;
      EXPECT_EQ(got[groups], 5.0f) << "written behind the end";
    }
  }
}

TEST(SamplingKernels, SumsOfExponentialsEqualTheirDefinition) {
  std::mt19937 random(3);
  for (int run = 0; run < 140; ++run) {
    const auto row = random_row(random, kSizes[run % std::size(kSizes)]);
    const RowScale scale = random_args(random, row).row;
    const float wanted = reference::exp_sum(row, scale);
    EXPECT_GE(wanted, 1.0f);  // the largest gives 1, a NaN nothing
    for (const KernelTable* table : all_tables()) {
      const float got = table->exp_sum(row.data(), static_cast<int>(row.size()), scale);
      EXPECT_TRUE(same_float(got, wanted)) << table->variant << " " << got << " " << wanted;
    }
    std::vector<float> x;
    for (const float logit : row) x.push_back(reference::scaled(logit, scale));
    for (const KernelTable* table : all_tables()) {
      std::vector<float> y(x.size());
      table->exp_all(x.data(), static_cast<int>(x.size()), y.data());
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(same_float(y[i], reference::exp(x[i])) || std::isnan(x[i])) << table->variant;
    }
  }
}

TEST(SamplingKernels, GatherTakesWhatLiesBetweenInOrder) {
  std::mt19937 random(4);
  for (int run = 0; run < 140; ++run) {
    const auto row = random_row(random, kSizes[run % std::size(kSizes)]);
    const int n = static_cast<int>(row.size());
    const RowScale scale = random_args(random, row).row;
    // Limits that some ids meet exactly: the lower one counts, the upper one does not.
    float least = reference::scaled(row[random() % n], scale);
    float below = reference::scaled(row[random() % n], scale);
    if (std::isnan(least)) least = -3.0f;
    if (std::isnan(below)) below = 1.0f;
    std::vector<uint64_t> wanted;
    for (int id = 0; id < n; ++id) {
      const float x = reference::scaled(row[id], scale);
      if (!(x >= least && x < below)) continue;
      wanted.push_back((uint64_t{std::bit_cast<uint32_t>(std::fabs(x))} << 32) |
                       static_cast<uint32_t>(id));
    }
    for (const KernelTable* table : all_tables()) {
      std::vector<uint64_t> got(n);
      got.resize(table->gather(row.data(), 0, n, scale, least, below, got.data()));
      EXPECT_EQ(got, wanted) << table->variant;
    }
  }
}

TEST(Noise, IsMinusLogOfMinusLog) {
  std::vector<uint32_t> bits = {0, 1, 2, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu};
  for (uint32_t h = 3; h < 0xf0000000u; h += 0x1f351u) bits.push_back(h);
  for (int shift = 0; shift < 32; ++shift) {
    bits.push_back(uint32_t{1} << shift);
    bits.push_back(~(uint32_t{1} << shift));
    bits.push_back((uint32_t{1} << shift) - 1);
  }
  for (const uint32_t h : bits) {
    const double one_less = (static_cast<double>(h) + 0.5) / 4294967296.0;
    const double exact = -std::log(-std::log1p(-one_less));
    const float got = reference::gumbel(h);
    EXPECT_NEAR(got, exact, 4e-7 * std::max(1.0, std::fabs(exact))) << h;
    EXPECT_LT(got, kMostNoise);
    EXPECT_GT(got, -3.14f);
  }
}

// The noise is part of what a seed promises: the same text from the same seed, in every version.
TEST(Noise, OfASeedIsFixedForGood) {
  const NoiseKey key = noise_key(42, 7);
  EXPECT_EQ(key.a, 0x32028f50u);
  EXPECT_EQ(key.b, 0x341ebd74u);
  const std::array<uint32_t, 3> bits = {reference::noise_bits(key, 0),
                                        reference::noise_bits(key, 1),
                                        reference::noise_bits(key, 49151)};
  EXPECT_EQ(bits, (std::array<uint32_t, 3>{0xab333671u, 0x87ccc2c8u, 0x0ec6fc25u}));
}

// Chi-square of counts against equal ones.
double chi_square(std::span<const int> counts) {
  double total = 0;
  for (const int count : counts) total += count;
  const double wanted = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) sum += (count - wanted) * (count - wanted) / wanted;
  return sum;
}
// That of 255 degrees of freedom, exceeded once in 1,000 times.
constexpr double kLimit255 = 330.5;

// Top bits of pairs of noises, 16 values each: 256 cells, all equally likely if there is no
// connection.
template <class Pair>
double pairs_chi_square(Pair pair) {
  std::array<int, 256> cells = {};
  for (int i = 0; i < 100000; ++i) {
    const auto [first, second] = pair(i);
    ++cells[(first >> 28) * 16 + (second >> 28)];
  }
  return chi_square(cells);
}

uint32_t bits_at(uint64_t seed, int64_t position, uint32_t id) {
  return reference::noise_bits(noise_key(seed, position), id);
}

TEST(Noise, OfNeighboursIsIndependent) {
  const auto expect_independent = [](const char* what, auto pair) {
    EXPECT_LT(pairs_chi_square(pair), kLimit255) << what;
  };
  using Two = std::pair<uint32_t, uint32_t>;
  expect_independent("ids of a row", [](int i) -> Two {
    return {bits_at(1, 5, 2 * i), bits_at(1, 5, 2 * i + 1)};
  });
  expect_independent("one id, positions one apart", [](int i) -> Two {
    return {bits_at(1, 2 * i, 11), bits_at(1, 2 * i + 1, 11)};
  });
  expect_independent("position and id both one further", [](int i) -> Two {
    return {bits_at(1, 2 * i, 11 + i), bits_at(1, 2 * i + 1, 12 + i)};
  });
  expect_independent("seeds one apart", [](int i) -> Two {
    return {bits_at(2 * i, 5, 3), bits_at(2 * i + 1, 5, 3)};
  });
  expect_independent("seed and position exchanged", [](int i) -> Two {
    return {bits_at(i, i + 1, 3), bits_at(i + 1, i, 3)};
  });
  // The control: noise that only moves along with the position is found out.
  EXPECT_GT(pairs_chi_square([](int i) -> Two {
              const NoiseKey key = noise_key(1, i / 1000);
              return {reference::noise_bits(key, i), reference::noise_bits(key, i)};
            }),
            10 * kLimit255);
}

TEST(Noise, FillsItsRangeEvenly) {
  const auto expect_even = [](const char* what, auto bits) {
    for (const int shift : {24, 16, 8, 0}) {  // every byte of the word
      std::array<int, 256> cells = {};
      for (int i = 0; i < 200000; ++i) ++cells[(bits(i) >> shift) & 255];
      EXPECT_LT(chi_square(cells), kLimit255) << what << ", byte at " << shift;
    }
  };
  expect_even("ids of a row", [](int i) { return bits_at(9, 1000, i); });
  expect_even("positions", [](int i) { return bits_at(9, i, 1000); });
  expect_even("seeds", [](int i) { return bits_at(i, 9, 1000); });
}

}  // namespace
}  // namespace paceline
