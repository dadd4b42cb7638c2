// exp on sixteen lanes; docs/numerics.md, rule 6.
#pragma once

#include "kernels/isa/lanes.h"

namespace paceline::PACELINE_ISA {
namespace {

// e^x, about 1 ulp. +0 below -87.3 (no denormal results), +infinity above 88.72, NaN stays NaN.
// x = n ln 2 + r; e^r by its Taylor polynomial of degree 7 on |r| <= ln 2 / 2; then n is added to
// the exponent field, which within these bounds stays that of a normal number.
LANES_INLINE F exp(F x) {
  const F magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const F shifted = x * set1(1.44269504f) + magic;
  const F n = shifted - magic;
  F r = fma(n, set1(-0.693359375f), x);  // ln 2 in two parts, the first with few bits
  r = fma(n, set1(2.12194440e-4f), r);
  F p = set1(1.0f / 5040.0f);
  p = fma(p, r, set1(1.0f / 720.0f));
  p = fma(p, r, set1(1.0f / 120.0f));
  p = fma(p, r, set1(1.0f / 24.0f));
  p = fma(p, r, set1(1.0f / 6.0f));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  const I exponent = as_int(shifted) - iset1(0x4b400000);
  F y = as_float(as_int(p) + shift_left<23>(exponent));
  y = select(x < set1(-87.3f), zero(), y);
  y = select(set1(88.72f) < x, set1(__builtin_inff()), y);
  return select(x < set1(__builtin_inff()), y, x);  // +infinity and NaN are their own result
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
