// The row operations around the products; docs/numerics.md, rules 2 and 6.
#pragma once

#include "kernels/isa/exp.h"
#include "kernels/isa/lanes.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

void rms_norm(const float* x, const float* weight, float eps, int rows, int dim, float* y) {
  for (int row = 0; row < rows; ++row, x += dim, y += dim) {
    F squares = zero();
    int i = 0;
    for (; i + kLanes <= dim; i += kLanes) {
      const F v = load(x + i);
      squares = fma(v, v, squares);
    }
    if (i < dim) {
      const F v = load_tail(x + i, dim - i);
      squares = fma(v, v, squares);
    }
    const float mean = fold_sum(squares) / static_cast<float>(dim);
    const float inverse = 1.0f / __builtin_sqrtf(mean + eps);
    for (i = 0; i + kLanes <= dim; i += kLanes)
      store(y + i, load(x + i) * set1(inverse) * load(weight + i));
    for (; i < dim; ++i) y[i] = x[i] * inverse * weight[i];
  }
}

void rope(float* x, int n_heads, int head_dim, const float* cos, const float* sin) {
  const int half = head_dim / 2;
  for (int head = 0; head < n_heads; ++head, x += head_dim) {
    float* a = x;
    float* b = x + half;
    int i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      const F va = load(a + i);
      const F vb = load(b + i);
      const F c = load(cos + i);
      const F s = load(sin + i);
      store(a + i, va * c - vb * s);
      store(b + i, vb * c + va * s);
    }
    for (; i < half; ++i) {
      const float va = a[i];
      const float vb = b[i];
      a[i] = va * cos[i] - vb * sin[i];
      b[i] = vb * cos[i] + va * sin[i];
    }
  }
}

LANES_INLINE F silu(F x) { return x / (set1(1.0f) + exp(zero() - x)); }

// x / 2 * (1 + tanh(t)) = x / (1 + e^(-2t)) with t = sqrt(2 / pi) (x + 0.044715 x^3).
LANES_INLINE F gelu(F x) {
  const F twice = x * fma(set1(0.0713548163f), x * x, set1(1.59576912f));
  return x / (set1(1.0f) + exp(zero() - twice));
}

// gate = Activation(gate) * up.
template <F (*Activation)(F)>
void gated(float* gate, const float* up, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(gate + i, Activation(load(gate + i)) * load(up + i));
  if (i < n) {
    float lanes[kLanes];
    store(lanes, Activation(load_tail(gate + i, static_cast<int>(n - i))) *
                     load_tail(up + i, static_cast<int>(n - i)));
    for (int lane = 0; i < n; ++i, ++lane) gate[i] = lanes[lane];
  }
}

// tanh x, about 2 ulp: below 0.625 an odd polynomial whose coefficients were fitted for the least
// relative error, above it 1 - 2 / (e^2x + 1).
LANES_INLINE F tanh(F x) {
  const F square = x * x;
  F p = set1(-0.00570498593f);
  p = fma(p, square, set1(0.0206390861f));
  p = fma(p, square, set1(-0.0537397154f));
  p = fma(p, square, set1(0.133314416f));
  p = fma(p, square, set1(-0.333332807f));
  const F near_zero = fma(x * square, p, x);
  const F magnitude = max(x, zero() - x);
  const F far = set1(1.0f) - set1(2.0f) / (exp(magnitude + magnitude) + set1(1.0f));
  return select(magnitude < set1(0.625f), near_zero, select(x < zero(), zero() - far, far));
}

void soft_cap(float* x, int64_t n, float cap) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(x + i, set1(cap) * tanh(load(x + i) / set1(cap)));
  if (i < n) {
    float lanes[kLanes];
    store(lanes, set1(cap) * tanh(load_tail(x + i, static_cast<int>(n - i)) / set1(cap)));
    for (int lane = 0; i < n; ++i, ++lane) x[i] = lanes[lane];
  }
}

inline constexpr float kMinusInfinity = -__builtin_inff();

int argmax(const float* x, int n) {
  // Each lane keeps the first of its largest elements; then lanes are compared, lowest index first.
  F best = set1(kMinusInfinity);
  I where = iset1(-1);
  int32_t first[kLanes];
  for (int i = 0; i < kLanes; ++i) first[i] = i;
  I index = iload(first);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F v = load(x + i);
    const M better = best < v;
    best = select(better, v, best);
    where = select(better, index, where);
    index = index + iset1(kLanes);
  }
  float values[kLanes];
  int32_t ids[kLanes];
  store(values, best);
  istore(ids, where);
  float top = kMinusInfinity;
  int id = -1;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (ids[lane] < 0) continue;
    if (values[lane] > top || (values[lane] == top && ids[lane] < id)) {
      top = values[lane];
      id = ids[lane];
    }
  }
  for (; i < n; ++i) {
    if (x[i] > top) {
      top = x[i];
      id = i;
    }
  }
  return top < __builtin_inff() ? id : -1;
}

// --- natural logarithm, for one value ------------------------------------------------------------

// log x for finite x > 0, computed in double: x = m 2^e with m near 1, then the series of
// atanh((m - 1) / (m + 1)).
LANES_INLINE double log_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
  double m;
  __builtin_memcpy(&m, &bits, sizeof(m));
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double t = (m - 1.0) / (m + 1.0);
  const double t2 = t * t;
  double sum = 0.0;
  for (int k = 25; k >= 1; k -= 2) sum = __builtin_fma(sum, t2, 1.0 / k);
  return __builtin_fma(static_cast<double>(exponent), 0.693147180559945309417, 2.0 * t * sum);
}

float log_sum_exp(const float* x, int n) {
  F most = set1(kMinusInfinity);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) most = max(load(x + i), most);
  float top = fold_max(most);
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;

  constexpr int kVocabularySpan = 1024;
  float total = 0.0f;
  for (int begin = 0; begin < n; begin += kVocabularySpan) {
    const int end = begin + kVocabularySpan < n ? begin + kVocabularySpan : n;
    F sum = zero();
    for (i = begin; i + kLanes <= end; i += kLanes) sum = sum + exp(load(x + i) - set1(top));
    if (i < end) {
      float lanes[kLanes];
      store(lanes, exp(load_tail(x + i, end - i) - set1(top)));
      sum = sum + load_tail(lanes, end - i);
    }
    total = total + fold_sum(sum);
  }
  if (!(total < __builtin_inff())) return total;  // a NaN among the elements; log_of takes none
  return static_cast<float>(static_cast<double>(top) + log_of(static_cast<double>(total)));
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
