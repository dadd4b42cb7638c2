// One AMX tile instruction: its definition against the emulation, the trapped instruction, a
// processor that flushes denormals, and the hardware.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/types.h"
#include "kernels/choose.h"
#include "kernels/reference.h"
#include "kernels/test_support.h"
#include "kernels/tile_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline {
namespace {

enum class Values { Ordinary, WideRange, Denormal, Border, Special };

bf16 draw(Values kind, Random& random) {
  switch (kind) {
    case Values::Ordinary:
      return to_bf16(random.normal());
    case Values::WideRange:
      return to_bf16(std::ldexp(random.normal(), random.up_to(60) - 30));
    case Values::Denormal:  // factors, products and sums around the least normal numbers
      return to_bf16(std::ldexp(
          random.normal(), random.up_to(1) == 0 ? -random.up_to(12) : -118 - random.up_to(16)));
    case Values::Border: {  // products of about 2^-126, where flushing begins, and 2^-151
      const int quarters = 4 + random.up_to(3);
      const float size = std::ldexp(static_cast<float>(quarters), -65 - 25 * random.up_to(1));
      return to_bf16(random.up_to(1) == 0 ? size : -size);
    }
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
      if (kind == Values::Border) start = 0x1p-126f * static_cast<float>(random.up_to(2) - 1);
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
                                 Values::Border, Values::Special};

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
              5 * kCases, differ[static_cast<int>(PairOrder::TwoChains)],
              differ[static_cast<int>(PairOrder::OneChain)]);
  EXPECT_EQ(differ[static_cast<int>(kPairOrder)], 0);
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
    const bool border = i % 2 == 0;
    const int inputs = 2 * (1 + random.up_to(3));
    for (int k = 0; k < inputs; ++k) {
      a.push_back(draw(border ? Values::Border : Values::Denormal, random));
      b.push_back(draw(border ? Values::Border : Values::Ordinary, random));
    }
    const float c = border ? 0.0f : std::ldexp(random.normal(), -120 - random.up_to(20));
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

}  // namespace
}  // namespace paceline
