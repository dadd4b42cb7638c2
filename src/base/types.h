// Types that files, kernels and models share, and exact conversions of numbers.
#pragma once

#include <bit>
#include <cstdint>

namespace paceline {

using TokenId = int32_t;

// Rows of a block with branches at most, and of a path in it.
inline constexpr int kMostTreeRows = 32;

// Sixteen-bit floats as they lie in memory. Arithmetic is always done in float32.
struct bf16 {
  uint16_t bits = 0;
};
struct f16 {
  uint16_t bits = 0;
};

inline float to_f32(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
inline bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// Exact, denormals, infinities and NaNs included.
float to_f32(f16 x);
// Round to nearest, ties to even; overflow gives infinity; a NaN stays a quiet NaN.
f16 to_f16(float x);

}  // namespace paceline
