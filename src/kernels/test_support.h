// What tests of kernels share: tables, random numbers and weights, comparison by bits.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/threads.h"
#include "kernels/packed.h"
#include "kernels/table.h"

namespace paceline {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Tables of portable numerics: those that this machine can run, and the AVX-512 kernels in portable
// C (isa/emulate_avx512.h).
std::vector<const KernelTable*> portable_tables();
// Tables whose products go through AMX tiles, of both numerics: the hardware's where there is some,
// the emulation over several lanes, and the instructions themselves, answered by amx_trap.h where
// the processor does not know them.
std::vector<const KernelTable*> tile_tables();
// Both.
std::vector<const KernelTable*> all_tables();

// What tests of the hardware say where there is none.
inline constexpr const char* kNoAmx = "not run on hardware: no AMX";

// The same bits, or a NaN on both sides.
testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> wanted);

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int up_to(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n + 1)); }
  float normal() { return normal_(engine_); }
  std::vector<float> normals(size_t n, float scale = 1.0f) {
    std::vector<float> x(n);
    for (float& v : x) v = scale * normal();
    return x;
  }
  // Values of any size, among them zeros of both signs and denormals; infinities and NaNs if asked.
  std::vector<float> wild(size_t n, bool with_special) {
    std::vector<float> x(n);
    for (float& v : x) {
      v = normal() * std::ldexp(1.0f, up_to(60) - 40);
      const int kind = up_to(40);
      if (kind == 0) v = 0.0f;
      if (kind == 1) v = -0.0f;
      if (kind == 2) v = std::ldexp(normal(), -140);
      if (with_special && up_to(300) == 0) v = kind % 2 == 0 ? kNan : -kInf;
    }
    return x;
  }
  std::vector<std::byte> bytes(size_t n) {
    std::vector<std::byte> b(n);
    for (std::byte& v : b) v = static_cast<std::byte>(engine_());
    return b;
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

// Weights packed, with the file's rows beside them.
struct Weights {
  std::vector<std::byte> rows;
  HugeBuffer memory;
  PackedMatrix packed;
};

// Packs w.rows.
void pack_weights(WeightType type, int n_out, int n_in, Weights& w);
Weights make_weights(WeightType type, int n_out, int n_in, Random& random);

// One row of activations with all weights, by definition.
std::vector<float> reference_product(const Weights& w, std::span<const float> x,
                                     Numerics numerics = Numerics::Portable);

// All rows of x (whole rows) in one product.
std::vector<float> rows_through(const KernelTable& table, ThreadPool& pool, const Weights& w,
                                std::span<const float> x, bool wide = false);

}  // namespace paceline
