#include "kernels/reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/types.h"
#include "kernels/rope.h"

namespace paceline::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float half_at(const std::byte* p) {
  f16 x;
  std::memcpy(&x.bits, p, 2);
  return to_f32(x);
}

float float_weight(WeightType type, const std::byte* weights, size_t k) {
  if (type == WeightType::F16) return half_at(weights + 2 * k);
  if (type == WeightType::BF16) {
    bf16 x;
    std::memcpy(&x.bits, weights + 2 * k, 2);
    return to_f32(x);
  }
  float x;
  std::memcpy(&x, weights + 4 * k, 4);
  return x;
}

// The integer that weight e of a block stands for, before scale and minimum.
int block_weight(WeightType type, const std::byte* block, int e) {
  if (type == WeightType::Q8_0) return static_cast<int8_t>(block[2 + e]);
  const int scales = type == WeightType::Q4_1 ? 4 : 2;
  const auto byte = static_cast<int>(block[scales + e % 16]);
  const int nibble = e < 16 ? byte & 15 : byte >> 4;
  return type == WeightType::Q4_0 ? nibble - 8 : nibble;
}

float quantized_product(WeightType type, const QuantizedRow& x, const std::byte* block) {
  const size_t bytes = type == WeightType::Q8_0 ? 34 : type == WeightType::Q4_0 ? 18 : 20;
  float acc = 0.0f;
  for (size_t b = 0; b < x.d.size(); ++b, block += bytes) {
    int32_t dot = 0;
    for (int e = 0; e < kQuantBlock; ++e)
      dot += block_weight(type, block, e) * x.q[b * kQuantBlock + e];
    acc = std::fma(static_cast<float>(dot), half_at(block) * x.d[b], acc);
    if (type == WeightType::Q4_1)
      acc = std::fma(half_at(block + 2), x.d[b] * static_cast<float>(x.sum[b]), acc);
  }
  return acc;
}

// What an AMX tile keeps of a number: denormals are zeros.
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// a * b + c, rounded once; zero if the sum, rounded to 24 bits without a least exponent, lies below
// 2^-126. Just there the sum in double is exact.
float fma_flushed(bf16 a, bf16 b, float c) {
  const float wide_a = flushed(to_f32(a));
  const float wide_b = flushed(to_f32(b));
  const float sum = std::fma(wide_a, wide_b, c);
  const double exact = static_cast<double>(wide_a) * wide_b + c;
  return std::fabs(exact) < 0x1p-126 - 0x1p-151 ? std::copysign(0.0f, sum) : sum;
}

float split_product(std::span<const float> x, const std::byte* weights) {
  float high = 0.0f;
  float low = 0.0f;
  for (size_t begin = 0; begin < x.size(); begin += kSplitChunk) {
    // Filled up with zeros, which are added: they turn -0 into +0.
    std::array<bf16, kSplitChunk> highs = {};
    std::array<bf16, kSplitChunk> lows = {};
    std::array<bf16, kSplitChunk> w = {};
    for (size_t k = begin; k < std::min(begin + kSplitChunk, x.size()); ++k) {
      const SplitValue parts = split(x[k]);
      highs[k - begin] = parts.high;
      lows[k - begin] = parts.low;
      std::memcpy(&w[k - begin].bits, weights + 2 * k, 2);
    }
    high = add_pairs(highs, w, high);
    low = add_pairs(lows, w, low);
  }
  return high + low;
}

float larger(float a, float b) { return a > b ? a : b; }

// The maximum in sixteen lanes, as the sums are; its order matters only where there are NaNs.
float max_in_lanes(std::span<const float> x) {
  std::array<float, 16> lanes;
  lanes.fill(-kInfinity);
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] = larger(x[i], lanes[i % 16]);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = larger(lanes[i], lanes[i + half]);
  return lanes[0];
}

}  // namespace

QuantizedRow quantize_row(std::span<const float> x) {
  QuantizedRow row;
  for (size_t begin = 0; begin < x.size(); begin += kQuantBlock) {
    const auto block = x.subspan(begin, kQuantBlock);
    float largest = 0.0f;
    bool finite = true;
    for (const float v : block) {
      largest = larger(std::fabs(v), largest);
      finite = finite && std::isfinite(v);
    }
    int32_t sum = 0;
    const bool zeros = !finite || largest < 0x1p-100f;
    for (const float v : block) {
      // nearbyint without libm: the sum rounds to an integer, ties to even.
      const float inverse = zeros ? 0.0f : 127.0f / largest;
      const int q = zeros ? 0 : static_cast<int>((v * inverse + 12582912.0f) - 12582912.0f);
      row.q.push_back(static_cast<int8_t>(q));
      sum += q;
    }
    row.sum.push_back(sum);
    row.d.push_back(!finite ? std::numeric_limits<float>::quiet_NaN()
                    : zeros ? 0.0f
                            : largest / 127.0f);
  }
  return row;
}

SplitValue split(float x) {
  const bf16 high = to_bf16(x);
  if (!std::isfinite(to_f32(high))) return {high, {}};
  return {high, to_bf16(x - to_f32(high))};
}

float add_pairs(std::span<const bf16> a, std::span<const bf16> b, float c, PairOrder order) {
  if (order == PairOrder::OneChain) {
    float sum = flushed(c);
    for (size_t i = 0; i < a.size(); ++i) sum = fma_flushed(a[i], b[i], sum);
    return sum;
  }
  float even = 0.0f;
  float odd = 0.0f;
  for (size_t i = 0; i < a.size(); i += 2) {
    even = fma_flushed(a[i], b[i], even);
    odd = fma_flushed(a[i + 1], b[i + 1], odd);
  }
  return flushed(flushed(c) + flushed(even + odd));
}

float product(WeightType type, std::span<const float> x, const std::byte* weights,
              Numerics numerics) {
  if (type == WeightType::BF16 && numerics == Numerics::Amx) return split_product(x, weights);
  if (type >= WeightType::Q8_0) return quantized_product(type, quantize_row(x), weights);
  float acc = 0.0f;
  for (size_t k = 0; k < x.size(); ++k) acc = std::fma(x[k], float_weight(type, weights, k), acc);
  return acc;
}

float sum_in_lanes(std::span<const float> x) {
  std::array<float, 16> lanes = {};
  for (size_t i = 0; i < (x.size() + 15) / 16 * 16; ++i)
    lanes[i % 16] = lanes[i % 16] + (i < x.size() ? x[i] : 0.0f);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  return lanes[0];
}

float exp(float x) {
  if (!(x < kInfinity)) return x;
  if (x < -87.3f) return 0.0f;
  if (x > 88.72f) return kInfinity;
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 1.0f / 5040.0f;
  for (const float c : {1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f})
    p = std::fma(p, r, c);
  const auto scaled =
      std::bit_cast<uint32_t>(p) + (static_cast<uint32_t>(static_cast<int>(n)) << 23);
  return std::bit_cast<float>(scaled);
}

std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight, float eps) {
  std::array<float, 16> lanes = {};
  for (size_t i = 0; i < (x.size() + 15) / 16 * 16; ++i) {
    const float v = i < x.size() ? x[i] : 0.0f;
    lanes[i % 16] = std::fma(v, v, lanes[i % 16]);
  }
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  const float mean = lanes[0] / static_cast<float>(x.size());
  const float inverse = 1.0f / std::sqrt(mean + eps);
  std::vector<float> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * inverse * weight[i]);
  return y;
}

void rope(std::span<float> head, std::span<const float> cos, std::span<const float> sin) {
  const size_t half = head.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * cos[i] - b * sin[i];
    head[i + half] = b * cos[i] + a * sin[i];
  }
}

float silu_mul(float gate, float up) { return gate / (1.0f + exp(0.0f - gate)) * up; }

float gelu_mul(float gate, float up) {
  const float twice = gate * std::fma(0.0713548163f, gate * gate, 1.59576912f);
  return gate / (1.0f + exp(0.0f - twice)) * up;
}

float tanh(float x) {
  const float magnitude = larger(x, 0.0f - x);
  if (magnitude < 0.625f) {
    const float square = x * x;
    float p = -0.00570498593f;
    for (const float c : {0.0206390861f, -0.0537397154f, 0.133314416f, -0.333332807f})
      p = std::fma(p, square, c);
    return std::fma(x * square, p, x);
  }
  const float far = 1.0f - 2.0f / (exp(magnitude + magnitude) + 1.0f);
  return x < 0.0f ? 0.0f - far : far;
}

float soft_cap(float x, float cap) { return cap * tanh(x / cap); }

std::vector<float> attend(std::span<const float> q, std::span<const float> keys,
                          std::span<const float> values, float scale, int window) {
  const size_t head_dim = q.size();
  const size_t positions = keys.size() / head_dim;
  const auto width = static_cast<size_t>(window);
  const size_t first = width > 0 && width < positions ? positions - width : 0;
  std::vector<float> p(positions, -kInfinity);
  for (size_t pos = first; pos < positions; ++pos) {
    float score = 0.0f;
    for (size_t d = 0; d < head_dim; ++d) score = std::fma(q[d], keys[pos * head_dim + d], score);
    p[pos] = score * scale;
  }
  const float top = max_in_lanes(p);
  for (size_t pos = 0; pos < positions; ++pos) p[pos] = pos < first ? 0.0f : exp(p[pos] - top);

  float total = 0.0f;
  std::vector<float> out(head_dim, 0.0f);
  for (size_t begin = 0; begin < positions; begin += kSpan) {
    const size_t end = std::min<size_t>(begin + kSpan, positions);
    total = total + sum_in_lanes(std::span(p).subspan(begin, end - begin));
    for (size_t d = 0; d < head_dim; ++d) {
      float sum = 0.0f;
      for (size_t pos = std::max(begin, first); pos < end; ++pos)
        sum = std::fma(p[pos], values[pos * head_dim + d], sum);
      out[d] = out[d] + sum;
    }
  }
  for (float& x : out) x = x / total;
  return out;
}

int argmax(std::span<const float> x) {
  int best = -1;
  float top = -kInfinity;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > top) {
      top = x[i];
      best = static_cast<int>(i);
    }
  }
  return top < kInfinity ? best : -1;
}

float log_sum_exp(std::span<const float> x) {
  const size_t whole = x.size() / 16 * 16;
  float top = max_in_lanes(x.first(whole));
  for (size_t i = whole; i < x.size(); ++i) top = larger(x[i], top);
  float total = 0.0f;
  for (size_t begin = 0; begin < x.size(); begin += 1024) {
    std::vector<float> span;
    for (size_t i = begin; i < std::min<size_t>(begin + 1024, x.size()); ++i)
      span.push_back(exp(x[i] - top));
    total = total + sum_in_lanes(span);
  }
  if (!(total < kInfinity)) return total;
  return static_cast<float>(static_cast<double>(top) + log_double(static_cast<double>(total)));
}

uint32_t noise_bits(NoiseKey key, uint32_t id) {
  uint32_t h = id + key.a;
  h = (h ^ (h >> 16)) * 0x2c1b3c6du;
  h = h ^ key.b;
  h = (h ^ (h >> 12)) * 0x297a2d39u;
  h = (h ^ (h >> 15)) * 0x85ebca6bu;
  return h ^ (h >> 16);
}

float gumbel(uint32_t bits) {
  const auto unit = [](uint32_t h) {  // (h + 1/2) / 2^32
    const auto high = static_cast<float>(h >> 16);
    const auto low = static_cast<float>(h & 0xffff);
    return std::fma(high, 65536.0f, low + 0.5f) * 0x1p-32f;
  };
  // x = m 2^exponent; log((1 + t) / (1 - t)) by its series.
  struct Split {
    float m, exponent;
  };
  const auto split = [](float x) -> Split {
    const uint32_t shifted = std::bit_cast<uint32_t>(x) - 0x3f3504f3u + 0x3f800000u;
    return {std::bit_cast<float>((shifted & 0x7fffffu) + 0x3f3504f3u),
            static_cast<float>(static_cast<int>(shifted >> 23) - 127)};
  };
  const auto twice_atanh = [](float t) {
    float p = 2.0f / 9.0f;
    for (const float c : {2.0f / 7.0f, 2.0f / 5.0f, 2.0f / 3.0f, 2.0f}) p = std::fma(p, t * t, c);
    return t * p;
  };
  const float v = unit(bits);
  const float w = unit(~bits);  // 1 - v
  const Split a = split(w);
  const float one_less = w < 0.70710678f ? 1.0f - a.m : v;
  const float waited = std::fma(a.exponent, -0.69314718f, twice_atanh(one_less / (1.0f + a.m)));
  const Split b = split(waited);
  return 0.0f - std::fma(b.exponent, 0.69314718f, twice_atanh((b.m - 1.0f) / (b.m + 1.0f)));
}

float scaled(float logit, const RowScale& row) { return (logit - row.top) * row.scale; }

float exp_sum(std::span<const float> logits, const RowScale& row) {
  float total = 0.0f;
  for (size_t begin = 0; begin < logits.size(); begin += 1024) {
    std::vector<float> span;
    for (const float logit : logits.subspan(begin, std::min<size_t>(1024, logits.size() - begin)))
      span.push_back(std::isnan(logit) ? 0.0f : exp(scaled(logit, row)));
    total = total + sum_in_lanes(span);
  }
  return total;
}

Drawn draw(std::span<const float> logits, const DrawArgs& args) {
  Drawn best;
  for (size_t i = 0; i < logits.size(); ++i) {
    const int id = static_cast<int>(i);
    const float x = scaled(logits[i], args.row);
    if (x < args.least || (x == args.least && id > args.last_tie)) continue;
    const float score = x + gumbel(noise_bits(args.key, static_cast<uint32_t>(id)));
    if (score > best.score) best = {score, id};
  }
  return best;
}

}  // namespace paceline::reference
