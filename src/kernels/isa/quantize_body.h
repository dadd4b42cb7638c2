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

// One block of the rows of a group, n of them. What a row needs one of is computed with rows for
// lanes: a division at a time would cost more than the rest.
LANES_INLINE void quantize_block(const float* in, int n_in, int n, int8_t* q, float* scale,
                                 float* scaled_sum, int32_t* sum) {
  const I magnitude_mask = iset1(0x7fffffff);
  int32_t largest[kRowGroup] = {};  // bits of a magnitude
  for (int r = 0; r < n; ++r) {
    const float* x = in + static_cast<int64_t>(r) * n_in;
    largest[r] =
        fold_max(max(as_int(load(x)) & magnitude_mask, as_int(load(x + 16)) & magnitude_mask));
  }
  const I bits = iload(largest);
  const M small = bits < iset1(kSmallestBits);
  const M finite = bits < iset1(kInfinityBits);
  const auto unless_small = [&](F value) __attribute__((always_inline)) {
    return select(small, zero(), value);
  };
  const F d = select(finite, unless_small(as_float(bits) / set1(127.0f)), set1(__builtin_nanf("")));
  float inverse[kRowGroup];
  store(inverse, select(finite, unless_small(set1(127.0f) / as_float(bits)), zero()));

  int32_t totals[kRowGroup] = {};
  for (int r = 0; r < n; ++r, q += kQuantBlock) {
    const float* x = in + static_cast<int64_t>(r) * n_in;
    // Adding 1.5 * 2^23 leaves the nearest integer, ties to even, in the low mantissa bits.
    const F magic = set1(12582912.0f);
    I i0 = as_int(load(x) * set1(inverse[r]) + magic) - iset1(0x4b400000);
    I i1 = as_int(load(x + 16) * set1(inverse[r]) + magic) - iset1(0x4b400000);
    if (largest[r] >= kInfinityBits) i0 = i1 = iset1(0);  // infinity times zero is none
    store_i8(q, i0);
    store_i8(q + 16, i1);
    totals[r] = fold_sum(i0 + i1);
  }
  const I total = iload(totals);
  const F scaled = d * to_float(total);
  if (n == kRowGroup) {
    store(scale, d);
    store(scaled_sum, scaled);
    istore(sum, total);
    return;
  }
  float d_of[kRowGroup], scaled_of[kRowGroup];
  store(d_of, d);
  store(scaled_of, scaled);
  for (int r = 0; r < n; ++r) {
    scale[r] = d_of[r];
    scaled_sum[r] = scaled_of[r];
    sum[r] = totals[r];
  }
}

void quantize_blocks(const float* x, int rows, int n_in, int64_t first, int64_t last, int8_t* q,
                     float* scale, float* scaled_sum, int32_t* sum) {
  const int n_blocks = n_in / kQuantBlock;
  for (int64_t block = first; block < last; ++block) {
    const int64_t base = block / n_blocks * kRowGroup;
    const int64_t b = block % n_blocks;
    const int n = rows - base < kRowGroup ? static_cast<int>(rows - base) : kRowGroup;
    const int64_t at = base * n_blocks + b * n;
    quantize_block(x + base * n_in + b * kQuantBlock, n_in, n, q + at * kQuantBlock, scale + at,
                   scaled_sum + at, sum + at);
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
