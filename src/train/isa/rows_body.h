// Operations of training on rows. Sums over a row run in sixteen lanes, the tail padded with zeros,
// then folded; sums over rows run row by row.
#pragma once

#include "kernels/isa/exp.h"
#include "kernels/isa/lanes.h"
#include "train/isa/product_body.h"
#include "train/table.h"

namespace paceline::PACELINE_ISA {
namespace {

using train::AdamArgs;
using train::LossRow;
using train::LossRowArgs;

// Calls body(i, n) for each sixteen elements: n is 16, or what is left at the end.
template <class Body>
LANES_INLINE void each_lanes(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, static_cast<int>(n - i));
}
LANES_INLINE F load_some(const float* p, int n) { return n == kLanes ? load(p) : load_tail(p, n); }
LANES_INLINE void store_some(float* p, F v, int n) {
  if (n == kLanes) {
    store(p, v);
    return;
  }
  float lanes[kLanes];
  store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

void rms_norm(const float* x, const float* weight, float eps, int rows, int dim, int64_t x_row,
              int64_t y_row, float* y, float* inverse) {
  for (int row = 0; row < rows; ++row, x += x_row, y += y_row) {
    F squares = zero();
    each_lanes(dim, [&](int64_t i, int n) {
      const F v = load_some(x + i, n);
      squares = fma(v, v, squares);
    });
    const float mean = fold_sum(squares) / static_cast<float>(dim);
    const float factor = 1.0f / __builtin_sqrtf(mean + eps);
    inverse[row] = factor;
    each_lanes(dim, [&](int64_t i, int n) {
      store_some(y + i, load_some(x + i, n) * set1(factor) * load_some(weight + i, n), n);
    });
  }
}

// y_i = w_i x_i s with s = (mean x^2 + eps)^(-1/2): d_x = s (w d_y) - x s^3 / dim * sum(w d_y x).
void rms_norm_back(const float* x, const float* weight, const float* inverse, const float* d_y,
                   int rows, int dim, int64_t x_row, int64_t y_row, bool add, float* d_x) {
  for (int row = 0; row < rows; ++row, x += x_row, d_x += x_row, d_y += y_row) {
    F products = zero();
    each_lanes(dim, [&](int64_t i, int n) {
      products =
          fma(load_some(weight + i, n) * load_some(d_y + i, n), load_some(x + i, n), products);
    });
    const float s = inverse[row];
    const F back = set1(-(s * s * s) / static_cast<float>(dim) * fold_sum(products));
    each_lanes(dim, [&](int64_t i, int n) {
      F d = load_some(weight + i, n) * load_some(d_y + i, n) * set1(s);
      d = fma(load_some(x + i, n), back, d);
      if (add) d = d + load_some(d_x + i, n);
      store_some(d_x + i, d, n);
    });
  }
}

void rms_norm_back_weight(const float* x, const float* inverse, const float* d_y, int rows,
                          int64_t x_row, int64_t y_row, int first, int last, float* d_weight) {
  for (int row = 0; row < rows; ++row, x += x_row, d_y += y_row) {
    each_lanes(last - first, [&](int64_t at, int n) {
      const int64_t i = first + at;
      const F d = load_some(d_y + i, n) * load_some(x + i, n) * set1(inverse[row]);
      store_some(d_weight + i, load_some(d_weight + i, n) + d, n);
    });
  }
}

void column_sums(const float* d_y, int rows, int64_t y_row, int first, int last, float* sums) {
  for (int row = 0; row < rows; ++row, d_y += y_row) {
    each_lanes(last - first, [&](int64_t at, int n) {
      const int64_t i = first + at;
      store_some(sums + i, load_some(sums + i, n) + load_some(d_y + i, n), n);
    });
  }
}

LANES_INLINE F sigmoid(F x) { return set1(1.0f) / (set1(1.0f) + exp(zero() - x)); }

void swiglu(const float* gate, const float* up, int64_t n, float* y) {
  each_lanes(n, [&](int64_t i, int some) {
    const F g = load_some(gate + i, some);
    store_some(y + i, g * sigmoid(g) * load_some(up + i, some), some);
  });
}

// silu' = s + g s (1 - s) with s = sigmoid(g).
void swiglu_back(const float* gate, const float* up, const float* d_y, int64_t n, float* d_gate,
                 float* d_up) {
  each_lanes(n, [&](int64_t i, int some) {
    const F g = load_some(gate + i, some);
    const F u = load_some(up + i, some);
    const F d = load_some(d_y + i, some);
    const F s = sigmoid(g);
    store_some(d_up + i, d * g * s, some);
    store_some(d_gate + i, d * u * fma(g * s, set1(1.0f) - s, s), some);
  });
}

void rope(float* x, int n_heads, int head_dim, const float* cos, const float* sin, bool back) {
  const int half = head_dim / 2;
  const F sign = set1(back ? -1.0f : 1.0f);
  for (int head = 0; head < n_heads; ++head, x += head_dim) {
    each_lanes(half, [&](int64_t i, int n) {
      const F a = load_some(x + i, n);
      const F b = load_some(x + half + i, n);
      const F c = load_some(cos + i, n);
      const F s = load_some(sin + i, n) * sign;
      store_some(x + i, a * c - b * s, n);
      store_some(x + half + i, b * c + a * s, n);
    });
  }
}

void add(const float* x, int64_t n, float* to) {
  each_lanes(n, [&](int64_t i, int some) {
    store_some(to + i, load_some(to + i, some) + load_some(x + i, some), some);
  });
}

void round_bf16(const float* x, int64_t n, float* y) {
  each_lanes(n, [&](int64_t i, int some) {
    uint16_t halves[kLanes];
    store_bf16(halves, load_some(x + i, some));
    store_some(y + i, load_bf16(halves), some);
  });
}

float dot(const float* x, const float* y, int n) {
  F sum = zero();
  each_lanes(n, [&](int64_t i, int some) {
    sum = fma(load_some(x + i, some), load_some(y + i, some), sum);
  });
  return fold_sum(sum);
}

void add_scaled(const float* x, float a, int n, float* y) {
  each_lanes(n, [&](int64_t i, int some) {
    store_some(y + i, fma(load_some(x + i, some), set1(a), load_some(y + i, some)), some);
  });
}

void scale(float* x, int n, float by) {
  for (int i = 0; i < n; ++i) x[i] *= by;  // the compiler's own lanes do
}

LANES_INLINE float row_max(const float* x, int n, float least) {
  F most = set1(least);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) most = max(load(x + i), most);
  float top = fold_max(most);
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

// Lanes behind n are zero, not e^0.
LANES_INLINE F first_lanes(F v, int n) {
  if (n == kLanes) return v;
  float lanes[kLanes];
  store(lanes, v);
  for (int i = n; i < kLanes; ++i) lanes[i] = 0;
  return load(lanes);
}

float exp_row(float* x, int n, float* most) {
  const float top = row_max(x, n, *most);
  *most = top;
  F sum = zero();
  each_lanes(n, [&](int64_t i, int some) {
    const F e = first_lanes(exp(load_some(x + i, some) - set1(top)), some);
    store_some(x + i, e, some);
    sum = sum + e;
  });
  return fold_sum(sum);
}

void exp_minus(float* s, int n, float log_sum) {
  each_lanes(n, [&](int64_t i, int some) {
    store_some(s + i, exp(load_some(s + i, some) - set1(log_sum)), some);
  });
}

void softmax_back(const float* p, const float* d_p, int n, float mean, float factor, float* s) {
  each_lanes(n, [&](int64_t i, int some) {
    const F d = (load_some(d_p + i, some) - set1(mean)) * load_some(p + i, some);
    store_some(s + i, d * set1(factor), some);
  });
}

void softmax(float* x, int n) {
  float most = -__builtin_inff();
  const float sum = exp_row(x, n, &most);
  scale(x, n, 1.0f / sum);
}

// ln x for positive normal x, in double: x = m 2^e, then the series of atanh((m - 1) / (m + 1)).
LANES_INLINE double log_positive(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
  double m;
  __builtin_memcpy(&m, &bits, sizeof(m));
  const double t = (m - 1.0) / (m + 1.0);
  double sum = 0.0;
  for (int k = 33; k >= 1; k -= 2) sum = sum * (t * t) + 1.0 / k;
  return exponent * 0.693147180559945309417 + 2.0 * t * sum;
}

int index_of(const float* x, int n, float value) {
  for (int i = 0; i < n; ++i)
    if (x[i] == value) return i;
  return 0;
}

// loss = soft_weight * -sum(t ln q) + hard_weight * -ln q[hard], q the softmax of the logits;
// d_logit = (soft_weight + hard_weight) q - soft_weight t - hard_weight [hard], times scale.
LossRow loss_row(const LossRowArgs& args) {
  const float* x = args.logits;
  const int n = args.n;
  const float top = row_max(x, n, -__builtin_inff());
  F sum = zero();
  F expected = zero();  // sum of t * logit
  each_lanes(n, [&](int64_t i, int some) {
    const F v = load_some(x + i, some);
    sum = sum + first_lanes(exp(v - set1(top)), some);
    if (args.soft != nullptr)
      expected = fma(load_some(args.soft + i, some), v - set1(top), expected);
  });
  const float total = fold_sum(sum);
  const double log_total = log_positive(total);

  const float soft_weight = args.soft != nullptr ? args.soft_weight : 0.0f;
  const float hard_weight = args.hard >= 0 ? args.hard_weight : 0.0f;
  double loss = 0;
  if (soft_weight > 0) loss += soft_weight * (log_total - fold_sum(expected));
  if (hard_weight > 0) loss += hard_weight * (log_total - (x[args.hard] - top));

  const F own = set1((soft_weight + hard_weight) * args.scale / total);
  const F theirs = set1(soft_weight * args.scale);
  float block[2 * kLanes];
  for (int begin = 0; begin < n; begin += 2 * kLanes) {
    const int count = n - begin < 2 * kLanes ? n - begin : 2 * kLanes;
    each_lanes(count, [&](int64_t at, int some) {
      const int64_t i = begin + at;
      F d = exp(load_some(x + i, some) - set1(top)) * own;
      if (args.soft != nullptr) d = d - load_some(args.soft + i, some) * theirs;
      store_some(block + at, d, some);
    });
    if (hard_weight > 0 && args.hard >= begin && args.hard < begin + count)
      block[args.hard - begin] -= hard_weight * args.scale;
    left_rows(block, 0, 1, count, 1.0f, args.d_units + begin / kPerUnit, 0);
  }
  // Logits that are no numbers must not look like a loss.
  if (!(total >= 1.0f && total < __builtin_inff())) loss = __builtin_nan("");
  return {static_cast<float>(loss), index_of(x, n, top)};
}

double sum_squares(const float* x, int64_t n) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 4096) {
    F sum = zero();
    each_lanes(n - begin < 4096 ? n - begin : 4096, [&](int64_t i, int some) {
      const F v = load_some(x + begin + i, some);
      sum = fma(v, v, sum);
    });
    total += fold_sum(sum);
  }
  return total;
}

// Division and root are exact operations, so every table gives the same weights.
LANES_INLINE F root(F x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int i = 0; i < kLanes; ++i) lanes[i] = __builtin_sqrtf(lanes[i]);
  return load(lanes);
}

void adam(const AdamArgs& args, const float* gradient, int64_t n, float* master, float* m,
          float* v) {
  each_lanes(n, [&](int64_t i, int some) {
    const F g = load_some(gradient + i, some) * set1(args.gradient_scale);
    const F first = load_some(m + i, some) * set1(args.beta1) + g * set1(1.0f - args.beta1);
    const F second = load_some(v + i, some) * set1(args.beta2) + g * g * set1(1.0f - args.beta2);
    store_some(m + i, first, some);
    store_some(v + i, second, some);
    const F step =
        first * set1(args.correct1) / (root(second * set1(args.correct2)) + set1(args.eps));
    const F w = load_some(master + i, some);
    store_some(master + i, w - w * set1(args.decay) - step * set1(args.rate), some);
  });
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
