// Products through AMX tiles: the row rule, the hardware and the goldens.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include "base/types.h"
#include "kernels/amx_trap.h"
#include "kernels/cases.h"
#include "kernels/choose.h"
#include "kernels/reference.h"
#include "kernels/test_support.h"
#include "kernels/tile_kernels.h"

namespace paceline {
namespace {

constexpr MatmulCase kRowShapes[] = {
    {"one", 1, 1}, {"odd", 17, 3}, {"tail", 35, 96}, {"many tiles", 131, 64}, {"deep", 48, 577}};

TEST(Amx, ARowAloneIsTheRowInABlock) {
  Random random(21);
  constexpr int kMost = 33;
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : kRowShapes) {
      if (is_quantized(type) && shape.n_in % kQuantBlock != 0) continue;
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      const auto x = random.wild(static_cast<size_t>(kMost) * shape.n_in, /*with_special=*/true);
      for (const KernelTable* table : tile_tables()) {
        SCOPED_TRACE(std::string(to_string(type)) + " " + shape.name + " " + table->variant + " " +
                     to_string(table->numerics));
        ThreadPool one(1);
        std::vector<float> alone;
        for (int r = 0; r < kMost; ++r) {
          const auto row = std::span(x).subspan(r * shape.n_in, shape.n_in);
          const auto y = rows_through(*table, one, w, row);
          ASSERT_TRUE(same_bits(y, reference_product(w, row, table->numerics))) << "row " << r;
          alone.insert(alone.end(), y.begin(), y.end());
        }
        for (const int threads : {1, 2, 3}) {
          ThreadPool pool(threads);
          for (int rows = 2; rows <= kMost; rows += threads)
            ASSERT_TRUE(
                same_bits(rows_through(*table, pool, w, std::span(x).first(rows * shape.n_in)),
                          std::span(alone).first(rows * shape.n_out)))
                << rows << " rows, " << threads << " threads";
        }
      }
    }
  }
}

// The negative control: a product whose halves are summed apart is noticed.
TEST(Amx, WideKernelsDoNotKeepTheRowRule) {
  Random random(22);
  const Weights w = make_weights(WeightType::BF16, 64, 256, random);
  const auto x = random.normals(2 * 256);
  ThreadPool pool(1);
  for (const KernelTable* table : tile_tables())
    EXPECT_FALSE(same_bits(rows_through(*table, pool, w, x, /*wide=*/true),
                           rows_through(*table, pool, w, x)))
        << table->variant;
}

// A last tile of inputs that is not full ends where the weights of the output tile end.
TEST(Amx, ReadsNothingBehindATile) {
  Random random(32);
  for (const int n_in : {1, 33, 95, 577}) {
    Weights w = make_weights(WeightType::BF16, 32, n_in, random);
    const size_t half = w.rows.size() / 2;
    for (size_t at = half; at < w.rows.size(); at += 2) {
      const bf16 nan = to_bf16(kNan);
      std::memcpy(&w.rows[at], &nan, 2);
    }
    pack_weights(WeightType::BF16, 32, n_in, w);
    ThreadPool pool(1);
    for (const int rows : {1, 9}) {
      const auto x = random.normals(static_cast<size_t>(rows) * n_in);
      for (const KernelTable* table : tile_tables()) {
        const auto y = rows_through(*table, pool, w, x);
        const auto wanted = reference_product(w, std::span(x).first(n_in), table->numerics);
        EXPECT_TRUE(same_bits(std::span(y).first(16), std::span(wanted).first(16)))
            << table->variant << ", " << n_in << " inputs, " << rows << " rows";
        EXPECT_TRUE(std::isnan(y[16])) << table->variant;
      }
    }
  }
}

TEST(Amx, TilesAreReleased) {
  Random random(23);
  ThreadPool pool(1);
  for (const WeightType type : {WeightType::BF16, WeightType::Q4_1}) {
    const Weights w = make_weights(type, 40, 64, random);
    const auto x = random.normals(17 * 64);
    for (const KernelTable* table : tile_tables()) {
      const int64_t before = amx_traps_answered();
      rows_through(*table, pool, w, x);
      EXPECT_FALSE(amx_tiles_are_configured()) << table->variant;
      const bool trapped = std::string(table->variant) == "amx trapped";
      const bool through_tiles = is_quantized(type) || table->numerics == Numerics::Amx;
      EXPECT_EQ(amx_traps_answered() > before, trapped && through_tiles) << table->variant;
    }
  }
}

TEST(AmxHardware, EqualsTheEmulationOnWholeProducts) {
  if (!amx_is_usable()) GTEST_SKIP() << kNoAmx;
  const auto tables = kernel_tables(Numerics::Amx);
  Random random(30);
  ThreadPool pool(2);
  for (const WeightType type : kWeightTypes) {
    for (const MatmulCase& shape : {kRealProducts[0], kRealProducts[3], kRealProducts[6]}) {
      const Weights w = make_weights(type, shape.n_out, shape.n_in, random);
      const auto x = random.wild(static_cast<size_t>(17) * shape.n_in, /*with_special=*/true);
      for (const int rows : {1, 4, 5, 8, 9, 16, 17}) {
        const auto some = std::span(x).first(static_cast<size_t>(rows) * shape.n_in);
        EXPECT_TRUE(same_bits(rows_through(*tables.back(), pool, w, some),
                              rows_through(*tables.front(), pool, w, some)))
            << to_string(type) << " " << shape.name << " " << rows;
      }
    }
  }
}

// Written by tools/oracle/make_amx_golden.py, which computes in whole numbers.
TEST(Amx, ProductsEqualTheGolden) {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) + "/tests/golden/amx_products.bin",
                     std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_GT(bytes.size(), 8u);
  ASSERT_EQ(bytes.substr(0, 4), "PLAX");
  size_t at = 4;
  const auto take = [&](void* to, size_t n) {
    ASSERT_LE(at + n, bytes.size());
    std::memcpy(to, bytes.data() + at, n);
    at += n;
  };
  uint32_t cases = 0;
  take(&cases, 4);
  ASSERT_EQ(cases, 6u);
  for (uint32_t i = 0; i < cases; ++i) {
    std::array<int32_t, 3> sizes = {};  // rows, outputs, inputs
    take(sizes.data(), 12);
    const auto [rows, n_out, n_in] = sizes;
    std::vector<float> x(static_cast<size_t>(rows) * n_in);
    std::vector<float> wanted(static_cast<size_t>(rows) * n_out);
    Weights w{std::vector<std::byte>(static_cast<size_t>(n_out) * n_in * 2), {}, {}};
    take(x.data(), x.size() * 4);
    take(w.rows.data(), w.rows.size());
    take(wanted.data(), wanted.size() * 4);
    pack_weights(WeightType::BF16, n_out, n_in, w);
    for (int r = 0; r < rows; ++r)
      EXPECT_TRUE(
          same_bits(reference_product(w, std::span(x).subspan(r * n_in, n_in), Numerics::Amx),
                    std::span(wanted).subspan(r * n_out, n_out)))
          << "case " << i << ", row " << r;
    ThreadPool pool(1);
    for (const KernelTable* table : tile_tables()) {
      if (table->numerics != Numerics::Amx) continue;
      EXPECT_TRUE(same_bits(rows_through(*table, pool, w, x), wanted))
          << "case " << i << ", " << table->variant;
    }
  }
  EXPECT_EQ(at, bytes.size());
}

}  // namespace
}  // namespace paceline
