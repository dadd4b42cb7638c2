// AMX: which table is chosen, the amx numerics, and what the hardware does.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/types.h"
#include "kernels/amx_trap.h"
#include "kernels/cases.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "kernels/test_support.h"
#include "kernels/tile_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline {
namespace {

constexpr const char* kNoAmx = "not run on hardware: no AMX";

TEST(Choice, ScalarAlwaysRunsAndTheBestIsLast) {
  const auto tables = kernel_tables();
  EXPECT_STREQ(tables[0]->variant, "scalar");
  EXPECT_EQ(*choose_kernel_table("", Numerics::Portable), tables.back());
  EXPECT_STREQ((*choose_kernel_table("scalar"))->isa, "scalar");
  EXPECT_EQ(choose_kernel_table("mmx").error().code, ErrorCode::BadUsage);
  for (const KernelTable* table : tables) EXPECT_EQ(table->numerics, Numerics::Portable);
  for (const KernelTable* table : kernel_tables(Numerics::Amx))
    EXPECT_EQ(table->numerics, Numerics::Amx);
}

TEST(Choice, AmxIsTheDefaultWhereItIsAndPortableBelowIt) {
  EXPECT_EQ((*choose_kernel_table("scalar"))->numerics, Numerics::Portable);
  EXPECT_EQ(choose_kernel_table("scalar", Numerics::Amx).error().code, ErrorCode::BadUsage);
  if (amx_is_usable()) {
    EXPECT_EQ((*choose_kernel_table(""))->numerics, Numerics::Amx);
    EXPECT_EQ((*choose_kernel_table("amx"))->numerics, Numerics::Amx);
    EXPECT_STREQ((*choose_kernel_table("", Numerics::Portable))->variant, "avx512-amx");
    EXPECT_STREQ((*choose_kernel_table("amx", Numerics::Portable))->variant, "avx512-amx");
    return;
  }
  EXPECT_EQ(*choose_kernel_table(""), kernel_tables().back());
  EXPECT_EQ(choose_kernel_table("amx").error().code, ErrorCode::Unsupported);
  const auto none = choose_kernel_table("", Numerics::Amx);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Unsupported);
  EXPECT_NE(none.error().message.find("amx-emulated"), std::string::npos);
}

TEST(Choice, TheEmulationIsTakenWhenAskedFor) {
  const auto emulated = choose_kernel_table("amx-emulated");
  if (!emulated) GTEST_SKIP() << "the emulation wants AVX2 on this processor";
  EXPECT_EQ((*emulated)->numerics, Numerics::Amx);
  EXPECT_EQ(*choose_kernel_table("amx-emulated", Numerics::Amx), *emulated);
  EXPECT_EQ(choose_kernel_table("amx-emulated", Numerics::Portable).error().code,
            ErrorCode::BadUsage);
}

// --- rows ----------------------------------------------------------------------------------------

std::vector<float> rows_through(const KernelTable& table, ThreadPool& pool, const Weights& w,
                                std::span<const float> x, bool wide = false) {
  const int n_in = w.packed.n_in;
  const int rows = static_cast<int>(x.size()) / n_in;
  auto prepared = *Activations::make(rows, n_in);
  std::vector<float> y(static_cast<size_t>(rows) * w.packed.n_out, kNan);
  project({x.data(), rows, n_in}, {{w.packed, {y.data(), rows, w.packed.n_out}}}, prepared,
          {&table, &pool, wide});
  return y;
}

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
  const auto x = random.normals(4 * 256);
  ThreadPool pool(1);
  for (const KernelTable* table : tile_tables())
    EXPECT_FALSE(same_bits(rows_through(*table, pool, w, x, /*wide=*/true),
                           rows_through(*table, pool, w, x)))
        << table->variant;
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

// --- two parts -----------------------------------------------------------------------------------

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

// --- one tile instruction ------------------------------------------------------------------------

enum class Values { Ordinary, WideRange, Denormal, Special };

bf16 draw(Values kind, Random& random) {
  switch (kind) {
    case Values::Ordinary:
      return to_bf16(random.normal());
    case Values::WideRange:
      return to_bf16(std::ldexp(random.normal(), random.up_to(60) - 30));
    case Values::Denormal:  // factors, products and sums around the least normal numbers
      return to_bf16(std::ldexp(
          random.normal(), random.up_to(1) == 0 ? -random.up_to(12) : -118 - random.up_to(16)));
    case Values::Special:
      break;
  }
  constexpr std::array<uint16_t, 10> kSpecial = {0x0000, 0x8000, 0x0001, 0x807f, 0x7f80,
                                                 0xff80, 0x7fc0, 0xffc1, 0x7f7f, 0x0080};
  return random.up_to(6) == 0 ? bf16{kSpecial[random.up_to(9)]} : to_bf16(random.normal());
}

// A random tile product, and what the two orders make of it.
struct TileCase {
  int rows, pairs;
  std::vector<uint16_t> a, b;
  std::vector<float> c;

  TileCase(Values kind, Random& random) : rows(1 + random.up_to(15)), pairs(1 + random.up_to(15)) {
    for (int i = 0; i < rows * pairs * 2; ++i) a.push_back(draw(kind, random).bits);
    for (int i = 0; i < pairs * 16 * 2; ++i) b.push_back(draw(kind, random).bits);
    for (int i = 0; i < rows * 16; ++i) {
      float start = random.up_to(3) == 0 ? 0.0f : to_f32(draw(kind, random)) * 1.0001f;
      if (kind == Values::Denormal) start = std::ldexp(random.normal(), -120 - random.up_to(20));
      c.push_back(start);
    }
  }
  std::vector<float> by_definition(PairOrder order) const {
    std::vector<float> out = c;
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < 16; ++n) {
        std::vector<bf16> left;
        std::vector<bf16> right;
        for (int k = 0; k < pairs; ++k) {
          for (int i = 0; i < 2; ++i) {
            left.push_back({a[(m * pairs + k) * 2 + i]});
            right.push_back({b[(k * 16 + n) * 2 + i]});
          }
        }
        out[m * 16 + n] = reference::add_pairs(left, right, c[m * 16 + n], order);
      }
    }
    return out;
  }
  std::vector<float> through(const KernelTable& table) const {
    std::vector<float> out = c;
    table.bf16_tile(rows, pairs, a.data(), b.data(), out.data());
    return out;
  }
};

constexpr Values kAllValues[] = {Values::Ordinary, Values::WideRange, Values::Denormal,
                                 Values::Special};

TEST(Amx, OneTileEqualsItsDefinition) {
  for (const KernelTable* table : tile_tables()) {
    if (table->numerics != Numerics::Amx) continue;
    Random random(28);
    for (const Values kind : kAllValues) {
      for (int i = 0; i < 50; ++i) {
        const TileCase one(kind, random);
        ASSERT_TRUE(same_bits(one.through(*table), one.by_definition(kPairOrder)))
            << table->variant << ", kind " << static_cast<int>(kind) << ", case " << i;
      }
    }
  }
}

// Asks the hardware in which order it sums. If this fails, kernels/pair_order.h says the wrong one,
// or there is a third.
TEST(AmxHardware, SumsPairsInTheOrderThatIsAssumed) {
  // The cases tell the two orders apart, or the question would have no answer.
  constexpr int kCases = 500;
  std::array<int, 2> differ = {};
  int orders_apart = 0;
  const KernelTable* hardware = amx_is_usable() ? kernel_tables(Numerics::Amx).back() : nullptr;
  Random random(29);
  for (const Values kind : kAllValues) {
    for (int i = 0; i < kCases; ++i) {
      const TileCase one(kind, random);
      const auto two_chains = one.by_definition(PairOrder::TwoChains);
      const auto one_chain = one.by_definition(PairOrder::OneChain);
      orders_apart += !same_bits(two_chains, one_chain);
      if (hardware == nullptr) continue;
      const auto got = one.through(*hardware);
      differ[static_cast<int>(PairOrder::TwoChains)] += !same_bits(got, two_chains);
      differ[static_cast<int>(PairOrder::OneChain)] += !same_bits(got, one_chain);
    }
  }
  EXPECT_GT(orders_apart, 2 * kCases);
  if (hardware == nullptr) GTEST_SKIP() << kNoAmx;
  std::printf("of %d tiles, the manual's order gives other bits in %d, the guide's in %d\n",
              4 * kCases, differ[static_cast<int>(PairOrder::TwoChains)],
              differ[static_cast<int>(PairOrder::OneChain)]);
  EXPECT_EQ(differ[static_cast<int>(kPairOrder)], 0);
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

#if defined(__x86_64__)
// The definition's way with denormals, against a processor told to flush them: its own fused
// multiply-adds, two chains and two additions.
[[gnu::target("fma")]] float add_pairs_in_hardware(std::span<const bf16> a, std::span<const bf16> b,
                                                   float c) {
  __m128 chains[2] = {_mm_setzero_ps(), _mm_setzero_ps()};
  for (size_t i = 0; i < a.size(); ++i) {
    const __m128 x = _mm_set_ss(to_f32(a[i]));
    const __m128 y = _mm_set_ss(to_f32(b[i]));
    chains[i % 2] = _mm_fmadd_ss(x, y, chains[i % 2]);
  }
  return _mm_cvtss_f32(_mm_add_ss(_mm_set_ss(c), _mm_add_ss(chains[0], chains[1])));
}

TEST(Amx, DenormalsAreFlushedAsTheProcessorFlushesThem) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no FMA";
  Random random(31);
  volatile float result = 0;
  int flushed = 0;
  for (int i = 0; i < 200000; ++i) {
    std::vector<bf16> a;
    std::vector<bf16> b;
    for (int k = 0; k < 2 * (1 + i % 4); ++k) {
      a.push_back(draw(Values::Denormal, random));
      b.push_back(draw(i % 3 == 0 ? Values::Denormal : Values::Ordinary, random));
    }
    const float c = std::ldexp(random.normal(), -120 - random.up_to(20));
    const unsigned control = _mm_getcsr();
    _mm_setcsr(control | 0x8040);  // flush to zero, denormals are zeros
    result = add_pairs_in_hardware(a, b, c);
    _mm_setcsr(control);
    const float got = result;
    const float wanted = reference::add_pairs(a, b, c, PairOrder::TwoChains);
    ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wanted)) << i;
    flushed += wanted == 0.0f;
  }
  EXPECT_GT(flushed, 1000);  // and not all of them
  EXPECT_LT(flushed, 190000);
}
#endif

// Numbers that round up to 2^-126 only with the precision of a denormal are flushed; those that
// reach it with 24 bits are not.
TEST(Amx, TheBorderOfFlushing) {
  const auto sum = [](float c, float a, float b) {
    const std::array<bf16, 4> left = {to_bf16(1.0f), {}, to_bf16(a), {}};
    const std::array<bf16, 4> right = {to_bf16(c), {}, to_bf16(b), {}};
    return reference::add_pairs(left, right, 0.0f);
  };
  EXPECT_EQ(sum(0x1p-126f, -0x1p-100f, 0x1p-51f), 0x1p-126f);         // 2^-151 less: a tie, to even
  EXPECT_EQ(sum(0x1p-126f, -0x1.8p-100f, 0x1p-51f), 0.0f);            // 1.5 times as much less
  EXPECT_EQ(std::fma(-0x1.8p-100f, 0x1p-51f, 0x1p-126f), 0x1p-126f);  // which IEEE rounds up
}

// --- goldens -------------------------------------------------------------------------------------

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
