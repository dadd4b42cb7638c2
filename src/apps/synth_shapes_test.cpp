#include "apps/synth_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline::apps {
namespace {

int64_t parameters(std::string_view family, std::string_view size) {
  const auto shape = find_synth_shape(family, size);
  int64_t sum = 0;
  for (const SynthTensor& tensor : synth_tensors(*shape)) sum += tensor.elements();
  return sum;
}

TEST(SynthShapes, HaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters("llama", "135m"), 134'515'008);
  // Qwen3-0.6B less a norm of 128 for q and for k in each of 28 layers.
  EXPECT_EQ(parameters("llama", "0.6b"), 596'049'920 - 28 * 2 * 128);
  EXPECT_EQ(parameters("llama", "1b"), 1'235'814'400);
  EXPECT_EQ(parameters("llama", "3b"), 3'212'749'824);
  EXPECT_EQ(parameters("llama", "8b"), 8'030'261'248);
  EXPECT_EQ(parameters("mistral", "7b"), 7'241'732'096);
  EXPECT_EQ(parameters("qwen2", "0.5b"), 494'032'768);
  EXPECT_EQ(parameters("gemma3", "270m"), 268'098'176);
  EXPECT_EQ(parameters("gemma3", "1b"), 999'885'952);
  EXPECT_EQ(parameters("qwen3", "0.6b"), 596'049'920);
  EXPECT_EQ(parameters("qwen3", "1.7b"), 1'720'574'976);
  EXPECT_EQ(parameters("qwen3", "4b"), 4'022'468'096);
  EXPECT_EQ(parameters("qwen3", "8b"), 8'190'735'360);
}

TEST(SynthShapes, NamesAreListedWhenOneIsUnknown) {
  const auto shape = find_synth_shape("llama", "7b");
  ASSERT_FALSE(shape.has_value());
  EXPECT_EQ(shape.error().message,
            "--size wants one of tiny, 135m, 0.6b, 1b, 3b, 8b for llama, not '7b'");
}

TEST(SourceRow, UndoesTheInterleavingOfEachHead) {
  const SynthTensor tensor{"q", "q", {16, 4}, Draw::Matrix, 8};
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 16; ++row) rows.push_back(source_row(tensor, row));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15}));
}

TEST(DrawRow, DependsOnSeedNameAndRowAlone) {
  const SynthTensor a{"a", "a", {1000, 64}, Draw::Matrix};
  const SynthTensor b{"b", "b", {1000, 64}, Draw::Matrix};
  std::vector<float> one(64);
  std::vector<float> two(64);
  draw_row(a, 1, 7, one);
  draw_row(a, 1, 7, two);
  EXPECT_EQ(one, two);
  draw_row(a, 2, 7, two);
  EXPECT_NE(one, two);
  draw_row(b, 1, 7, two);
  EXPECT_NE(one, two);
  draw_row(a, 1, 8, two);
  EXPECT_NE(one, two);
}

TEST(DrawRow, HasTheVarianceThatKeepsActivationsInRange) {
  const SynthTensor tensor{"a", "a", {200, 64}, Draw::Matrix};
  std::vector<float> row(64);
  double sum = 0;
  double squares = 0;
  for (int r = 0; r < 200; ++r) {
    draw_row(tensor, 3, r, row);
    for (const float x : row) {
      sum += x;
      squares += double{x} * x;
    }
  }
  EXPECT_NEAR(sum / 12800, 0, 0.005);
  EXPECT_NEAR(squares / 12800, 1.0 / 64, 0.0005);
}

TEST(RopeDivisors, AreOneForFastAndTheFactorForSlowRotations) {
  const auto shape = find_synth_shape("llama", "1b");
  const std::vector<float> divisors = rope_divisors(*shape);
  ASSERT_EQ(divisors.size(), 32u);
  EXPECT_EQ(divisors.front(), 1);
  EXPECT_EQ(divisors.back(), 32);
  EXPECT_TRUE(std::is_sorted(divisors.begin(), divisors.end()));
}

}  // namespace
}  // namespace paceline::apps
