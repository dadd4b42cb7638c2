// Products of every instruction set against their definitions, by bytes.
#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/types.h"
#include "kernels/cases.h"
#include "kernels/choose.h"
#include "kernels/reference.h"
#include "kernels/test_support.h"

namespace paceline {
namespace {

TEST(Kernels, ProductsEqualTheirDefinition) {
  Random random(1);
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : kOddProducts) {
      if (is_quantized(type) && shape.n_in % kQuantBlock != 0) continue;
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      constexpr int kRows = 19;
      const auto x = random.wild(kRows * shape.n_in, /*with_special=*/true);
      const auto bias = random.normals(shape.n_out);
      std::vector<std::vector<float>> by_numerics[2];
      for (const auto numerics : {Numerics::Portable, Numerics::Amx})
        for (int r = 0; r < kRows; ++r)
          by_numerics[static_cast<int>(numerics)].push_back(
              reference_product(w, std::span(x).subspan(r * shape.n_in, shape.n_in), numerics));
      auto prepared = *Activations::make(kRows, shape.n_in);
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        for (const KernelTable* table : all_tables()) {
          SCOPED_TRACE(std::string(to_string(type)) + " " + shape.name + " " + table->variant);
          const Kernels kernels{table, &pool};
          const auto& wanted = by_numerics[static_cast<int>(table->numerics)];
          for (int rows = 1; rows <= kRows; ++rows) {
            std::vector<float> y(rows * shape.n_out, 1.0f);
            const Mat<float> out(y.data(), rows, shape.n_out);
            project({x.data(), rows, shape.n_in}, {{w.packed, out}}, prepared, kernels);
            for (int r = 0; r < rows; ++r)
              ASSERT_TRUE(same_bits(out.row(r), wanted[r])) << rows << " rows, row " << r;
          }
          // With a bias, and added to what is there.
          std::vector<float> y(shape.n_out, 0.5f);
          project({x.data(), 1, shape.n_in},
                  {{w.packed, {y.data(), 1, shape.n_out}, bias.data(), Store::Add}}, prepared,
                  kernels);
          for (int o = 0; o < shape.n_out; ++o)
            EXPECT_TRUE(same_bits({&y[o], 1}, {{0.5f + (wanted[0][o] + bias[o])}}));
        }
      }
    }
  }
}

TEST(Kernels, ProductsOfRealShapesEqualTheirDefinition) {
  Random random(2);
  for (const WeightType type : kWeightTypes) {
    const Weights w = make_weights(type, 192, 576, random);
    const auto x = random.normals(576 * 5, 3.0f);
    auto prepared = *Activations::make(5, 576);
    ThreadPool pool(2);
    for (const KernelTable* table : all_tables()) {
      std::vector<float> y(5 * 192);
      const Mat<float> out(y.data(), 5, 192);
      project({x.data(), 5, 576}, {{w.packed, out}}, prepared, {table, &pool});
      for (int r = 0; r < 5; ++r)
        ASSERT_TRUE(same_bits(
            out.row(r), reference_product(w, std::span(x).subspan(r * 576, 576), table->numerics)))
            << to_string(type) << " " << table->variant;
    }
  }
}

// What follows a product sees finished columns of all of them, each once, in whole blocks, also
// where weights of several forms make several runs of it.
TEST(Kernels, WhatFollowsAProductSeesFinishedColumns) {
  constexpr int kOut = 176;  // not a whole number of blocks
  constexpr int kIn = 64;
  Random random(11);
  for (const auto& [a, b] : {std::pair{WeightType::Q4_1, WeightType::Q8_0},
                             {WeightType::BF16, WeightType::F32},
                             {WeightType::F32, WeightType::Q4_0}}) {
    const Weights first = make_weights(a, kOut, kIn, random);
    const Weights second = make_weights(b, kOut, kIn, random);
    for (const int rows : {1, 3, 17}) {
      const auto x = random.normals(rows * kIn);
      auto prepared = *Activations::make(rows, kIn);
      for (const int threads : {1, 3, 8}) {
        ThreadPool pool(threads);
        for (const KernelTable* table : all_tables()) {
          SCOPED_TRACE(std::string(to_string(a)) + " " + table->variant);
          const Kernels kernels{table, &pool};
          const Mat<const float> in(x.data(), rows, kIn);
          std::vector<float> wanted[2], got[2], seen[2];
          const auto outs = [&](std::vector<float>& y) {
            y.assign(static_cast<size_t>(rows) * kOut, 7.0f);
            return Mat<float>(y.data(), rows, kOut);
          };
          project(in, {{first.packed, outs(wanted[0])}, {second.packed, outs(wanted[1])}}, prepared,
                  kernels);
          const Mat<float> y0 = outs(got[0]), y1 = outs(got[1]);
          const Mat<float> s0 = outs(seen[0]), s1 = outs(seen[1]);
          std::array<std::atomic<int>, kOut> calls = {};
          const auto follow = [&](int begin, int end) {
            if (begin % kQuantBlock != 0) calls[begin] = 99;
            for (int o = begin; o < end; ++o) {
              ++calls[o];
              for (int r = 0; r < rows; ++r) {
                s0.row(r)[o] = y0.row(r)[o];
                s1.row(r)[o] = y1.row(r)[o];
              }
            }
          };
          project(in, {{first.packed, y0}, {second.packed, y1}}, prepared, kernels, Then(follow));
          for (const auto& n : calls) ASSERT_EQ(n, 1);
          for (int i = 0; i < 2; ++i) ASSERT_TRUE(same_bits(seen[i], wanted[i])) << rows << " rows";
        }
      }
    }
  }
}

TEST(Kernels, RowsPreparedInPiecesAreThoseOfOnePiece) {
  constexpr int kIn = 96;
  Random random(12);
  ThreadPool pool(1);
  const Weights w = make_weights(WeightType::Q8_0, 48, kIn, random);
  for (const int rows : {1, 2, 16, 19}) {
    const auto values = random.normals(rows * kIn);
    const Mat<const float> x(values.data(), rows, kIn);
    for (const KernelTable* table : all_tables()) {
      const Kernels kernels{table, &pool};
      auto whole = *Activations::make(rows, kIn);
      auto pieces = *Activations::make(rows, kIn);
      whole.set(x, WeightType::Q8_0, kernels);
      ASSERT_TRUE(pieces.begin(x, WeightType::Q8_0, kernels));
      for (const int first : {64, 0, 32}) pieces.set_columns(x, first, first + 32, *table);
      std::vector<float> wanted(rows * 48), got(rows * 48);
      const Product of_whole{w.packed, {wanted.data(), rows, 48}};
      const Product of_pieces{w.packed, {got.data(), rows, 48}};
      matmul(whole, {&of_whole, 1}, kernels);
      matmul(pieces, {&of_pieces, 1}, kernels);
      ASSERT_TRUE(same_bits(got, wanted)) << rows << " rows, " << table->variant;
    }
  }
  auto a = *Activations::make(1, kIn);
  const std::vector<float> row(kIn);
  EXPECT_FALSE(a.begin({row.data(), 1, kIn}, WeightType::F16, {all_tables().front(), &pool}));
}

TEST(Kernels, ExtremeWeightsDoNotSaturate) {
  // Every weight and every activation at its largest, both signs.
  for (const auto& [type, byte] : {std::pair{WeightType::Q8_0, 0x80},
                                   {WeightType::Q8_0, 0x7f},
                                   {WeightType::Q4_0, 0x00},
                                   {WeightType::Q4_1, 0xff}}) {
    for (const float sign : {1.0f, -1.0f}) {
      constexpr int kIn = 64;
      Random random(3);
      Weights w = make_weights(type, 16, kIn, random);
      const size_t block = row_bytes(type, kQuantBlock);
      const size_t scales = type == WeightType::Q4_1 ? 4 : 2;
      for (size_t at = 0; at < w.rows.size(); ++at)
        if (at % block >= scales) w.rows[at] = static_cast<std::byte>(byte);
      std::array<const std::byte*, 16> rows;
      for (int o = 0; o < 16; ++o) rows[o] = w.rows.data() + o * row_bytes(type, kIn);
      pack_tile(w.packed, 0, rows, w.memory.data());
      const std::vector<float> x(kIn, 5.0f * sign);
      auto prepared = *Activations::make(1, kIn);
      ThreadPool pool(1);
      for (const KernelTable* table : all_tables()) {
        std::vector<float> y(16);
        project({x.data(), 1, kIn}, {{w.packed, {y.data(), 1, 16}}}, prepared, {table, &pool});
        EXPECT_TRUE(same_bits(y, reference_product(w, x))) << to_string(type) << table->variant;
      }
    }
  }
}

TEST(Kernels, QuantisedActivationsFollowTheRule) {
  // 127 is reached, ties go to even, tiny blocks are zeros, a NaN or infinity poisons its block.
  std::vector<float> x(32, 0.0f);
  x[0] = -127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  const auto row = reference::quantize_row(x);
  EXPECT_EQ(row.d[0], 1.0f);
  EXPECT_EQ((std::vector<int8_t>(row.q.begin(), row.q.begin() + 4)),
            (std::vector<int8_t>{-127, 0, 2, -2}));
  EXPECT_EQ(row.sum[0], -127);
  EXPECT_EQ(reference::quantize_row(std::vector<float>(32, 0x1p-101f)).d[0], 0.0f);
  EXPECT_GT(reference::quantize_row(std::vector<float>(32, 0x1p-100f)).d[0], 0.0f);
  for (const float bad : {kNan, kInf, -kInf}) {
    x[17] = bad;
    EXPECT_TRUE(std::isnan(reference::quantize_row(x).d[0]));
    for (const KernelTable* table : all_tables()) {
      std::vector<int8_t> q(32);
      float d = 0;
      float scaled = 0;
      int32_t sum = 1;
      table->quantize_blocks(x.data(), 1, 32, 0, 1, q.data(), &d, &scaled, &sum);
      EXPECT_TRUE(std::isnan(d)) << table->variant;
      EXPECT_EQ(sum, 0);
    }
  }
  // The largest finite values are not taken for infinities.
  const std::vector<float> large(32, std::numeric_limits<float>::max());
  EXPECT_FALSE(std::isnan(reference::quantize_row(large).d[0]));
  for (const KernelTable* table : all_tables()) {
    std::vector<int8_t> q(32);
    float d = 0;
    float scaled = 0;
    int32_t sum = 1;
    table->quantize_blocks(large.data(), 1, 32, 0, 1, q.data(), &d, &scaled, &sum);
    EXPECT_EQ(d, reference::quantize_row(large).d[0]) << table->variant;
    EXPECT_EQ(sum, 32 * 127);
  }
}

TEST(Kernels, FusedMultiplyAddRoundsOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 lies half-way between two floats; 2^-60 more decides. A sum
  // in double loses it, rounds to even, and is wrong.
  const float a = 1.0f + 0x1p-12f;
  const float c = 0x1p-60f;
  const float right = 1.0f + 0x1p-11f + 0x1p-23f;
  EXPECT_EQ(static_cast<float>(static_cast<double>(a) * a + static_cast<double>(c)),
            1.0f + 0x1p-11f);
  const std::vector<float> x = {1.0f, a};
  const std::vector<float> w = {c, a};
  const auto* row = reinterpret_cast<const std::byte*>(w.data());
  EXPECT_EQ(reference::product(WeightType::F32, x, row), right);
  std::array<const std::byte*, kTileOutputs> rows = {row};
  std::vector<std::byte> tile(tile_bytes(WeightType::F32, 2));
  pack_tile({WeightType::F32, 1, 2}, 0, rows, tile.data());
  auto prepared = *Activations::make(1, 2);
  ThreadPool pool(1);
  for (const KernelTable* table : all_tables()) {
    float y = 0;
    project({x.data(), 1, 2}, {{{WeightType::F32, 1, 2, tile.data()}, {&y, 1, 1}}}, prepared,
            {table, &pool});
    EXPECT_EQ(y, right) << table->variant;
  }
}

TEST(Packed, RowsComeBackAsTheReferencePackagesRoundThem) {
  Random random(11);
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : kOddProducts) {
      if (is_quantized(type) && shape.n_in % kQuantBlock != 0) continue;
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      for (int row = 0; row < shape.n_out; ++row) {
        std::vector<float> got(shape.n_in);
        unpack_row(w.packed, row, got);
        const std::byte* stored = w.rows.data() + row * row_bytes(type, shape.n_in);
        for (int k = 0; k < shape.n_in; ++k) {
          float wanted = 0;
          if (!is_quantized(type)) {  // x = 1 picks one weight
            std::vector<float> one(shape.n_in, 0.0f);
            one[k] = 1.0f;
            wanted = reference::product(type, one, stored);
          } else {
            const std::byte* block = stored + k / 32 * row_bytes(type, 32);
            const auto half = [&](int at) {
              f16 h;
              std::memcpy(&h.bits, block + at, 2);
              return to_f32(h);
            };
            const int e = k % 32;
            const auto nibble = [&](int scales) {
              const int byte = static_cast<int>(block[scales + e % 16]);
              return static_cast<float>(e < 16 ? byte & 15 : byte >> 4);
            };
            if (type == WeightType::Q8_0) wanted = half(0) * static_cast<int8_t>(block[2 + e]);
            if (type == WeightType::Q4_0) wanted = half(0) * (nibble(2) - 8.0f);
            if (type == WeightType::Q4_1) {
              const float scaled = half(0) * nibble(4);
              wanted = scaled + half(2);
            }
          }
          ASSERT_TRUE(same_bits({&got[k], 1}, {&wanted, 1})) << to_string(type) << shape.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline
