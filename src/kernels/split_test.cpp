// Activations in two bf16 parts: the amx numerics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/types.h"
#include "kernels/reference.h"
#include "kernels/test_support.h"

namespace paceline {
namespace {

TEST(Split, TwoPartsHoldSeventeenBits) {
  Random random(24);
  for (int i = 0; i < 100000; ++i) {
    const float x = std::ldexp(random.normal(), random.up_to(200) - 100);
    const auto [high, low] = reference::split(x);
    const double kept = static_cast<double>(to_f32(high)) + static_cast<double>(to_f32(low));
    ASSERT_LE(std::fabs(kept - static_cast<double>(x)), std::fabs(x) * 0x1p-17) << x;
  }
}

TEST(Split, WhatFitsEightBitsHasNoSecondPart) {
  for (int i = -255; i <= 255; ++i) {
    const auto [high, low] = reference::split(std::ldexp(static_cast<float>(i), i % 30));
    EXPECT_EQ(low.bits, 0) << i;
    EXPECT_EQ(to_f32(high), std::ldexp(static_cast<float>(i), i % 30));
  }
  for (const float x : {kInf, -kInf, kNan, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(reference::split(x).low.bits, 0) << x;
    EXPECT_FALSE(std::isfinite(to_f32(reference::split(x).high))) << x;
  }
}

TEST(Split, KernelsSplitAsDefined) {
  Random random(25);
  for (const KernelTable* table : tile_tables()) {
    if (table->numerics != Numerics::Amx) continue;
    for (const int n_in : {1, 3, 31, 32, 33, 64, 100}) {
      for (const int rows : {1, 2, 16, 17, 35}) {
        const auto x = random.wild(static_cast<size_t>(rows) * n_in, /*with_special=*/true);
        const int chunks = (n_in + kSplitChunk - 1) / kSplitChunk;
        std::vector<uint16_t> got(static_cast<size_t>(rows) * chunks * 2 * kSplitChunk, 0xffff);
        table->split_rows(x.data(), rows, n_in, 0, rows, got.data());
        for (int r = 0; r < rows; ++r) {
          const int base = r / kRowGroup * kRowGroup;
          const int in_group = std::min(kRowGroup, rows - base);
          for (int k = 0; k < chunks * kSplitChunk; ++k) {
            const auto parts = reference::split(k < n_in ? x[r * n_in + k] : 0.0f);
            const size_t at = static_cast<size_t>(base) * chunks * 2 * kSplitChunk +
                              (k / kSplitChunk * 2 * in_group + r - base) * kSplitChunk +
                              k % kSplitChunk;
            ASSERT_EQ(got[at], parts.high.bits) << table->variant << rows << " " << r << " " << k;
            ASSERT_EQ(got[at + in_group * kSplitChunk], parts.low.bits) << table->variant;
          }
        }
      }
    }
  }
}

// Inputs of eight bits have a low part of zeros, and rows that need it beside them change nothing:
// splitting belongs to the operation, not to what is in a row.
TEST(Split, BelongsToTheOperation) {
  Random random(26);
  const Weights w = make_weights(WeightType::BF16, 32, 96, random);
  std::vector<float> x = random.normals(3 * 96);
  for (int k = 0; k < 96; ++k) x[96 + k] = to_f32(to_bf16(x[96 + k]));
  ThreadPool pool(1);
  for (const KernelTable* table : tile_tables()) {
    const auto all = rows_through(*table, pool, w, x);
    const auto alone = rows_through(*table, pool, w, std::span(x).subspan(96, 96));
    EXPECT_TRUE(same_bits(std::span(all).subspan(32, 32), alone)) << table->variant;
  }
}

// The sums of a split row are as close to the exact ones as those of one chain of float32.
TEST(Split, LosesLittle) {
  Random random(27);
  const Weights w = make_weights(WeightType::BF16, 64, 1024, random);
  const auto x = random.normals(1024);
  double worst = 0;
  const auto y = reference_product(w, x, Numerics::Amx);
  for (int o = 0; o < 64; ++o) {
    double exact = 0;
    double size = 0;
    for (int k = 0; k < 1024; ++k) {
      bf16 weight;
      std::memcpy(&weight.bits, w.rows.data() + (o * 1024 + k) * 2, 2);
      const double term = static_cast<double>(x[k]) * static_cast<double>(to_f32(weight));
      exact += term;
      size += term * term;
    }
    worst = std::max(worst, std::fabs(static_cast<double>(y[o]) - exact) / std::sqrt(size));
  }
  EXPECT_LT(worst, 1e-5);
  RecordProperty("worst_relative_error", std::to_string(worst));
}

}  // namespace
}  // namespace paceline
