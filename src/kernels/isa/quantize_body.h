// Activations to int8 blocks; docs/numerics.md, rule 4.
#pragma once

#include "kernels/isa/lanes.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

// Bits of the smallest magnitude that is not taken for zero, 2^-100, and of infinity. Magnitudes
// compare as their bits do, with infinity and NaNs on top.
inline constexpr int32_t kSmallestBits = (127 - 100) << 23;
inline constexpr int32_t kInfinityBits = 0x7f800000;

void quantize_rows(const float* x, int rows, int n_in, int first, int n, int8_t* q, float* scale,
                   float* scaled_sum, int32_t* sum) {
  const int n_blocks = n_in / kQuantBlock;
  for (int row = first; row < first + n; ++row) {
    const int base = row / kRowGroup * kRowGroup;
    const int in_group = rows - base < kRowGroup ? rows - base : kRowGroup;
    const float* in = x + static_cast<int64_t>(row) * n_in;
    int64_t at = static_cast<int64_t>(base) * n_blocks + (row - base);
    for (int b = 0; b < n_blocks; ++b, in += kQuantBlock, at += in_group) {
      const F x0 = load(in);
      const F x1 = load(in + 16);
      const I magnitude_mask = iset1(0x7fffffff);
      const int32_t largest_bits =
          fold_max(max(as_int(x0) & magnitude_mask, as_int(x1) & magnitude_mask));
      float largest;
      __builtin_memcpy(&largest, &largest_bits, sizeof(largest));
      const bool finite = largest_bits < kInfinityBits;
      const bool zeros = !finite || largest_bits < kSmallestBits;
      const float inverse = zeros ? 0.0f : 127.0f / largest;
      const float d = zeros ? (finite ? 0.0f : __builtin_nanf("")) : largest / 127.0f;
      // Adding 1.5 * 2^23 leaves the nearest integer, ties to even, in the low mantissa bits.
      const F magic = set1(12582912.0f);
      I i0 = as_int(x0 * set1(inverse) + magic) - iset1(0x4b400000);
      I i1 = as_int(x1 * set1(inverse) + magic) - iset1(0x4b400000);
      if (zeros) i0 = i1 = iset1(0);  // infinity times zero is none
      int8_t* out = q + at * kQuantBlock;
      store_i8(out, i0);
      store_i8(out + 16, i1);
      const int32_t total = fold_sum(i0 + i1);
      scale[at] = d;
      scaled_sum[at] = d * static_cast<float>(total);
      sum[at] = total;
    }
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
