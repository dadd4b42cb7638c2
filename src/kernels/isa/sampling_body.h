// Drawing a token from a row of logits: kernels/sampling.h has the rule, docs/numerics.md the
// reasons.
#pragma once

#include "kernels/isa/math_body.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

LANES_INLINE I lane_index() {
  int32_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return iload(lanes);
}

// Elements [i, end) of a row, padded with what is never chosen.
LANES_INLINE F load_logits(const float* x, int i, int end) {
  if (i + kLanes <= end) return load(x + i);
  float lanes[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    lanes[lane] = i + lane < end ? x[i + lane] : kMinusInfinity;
  return load(lanes);
}

LANES_INLINE F scaled(F logits, const RowScale& row) {
  return (logits - set1(row.top)) * set1(row.scale);
}

void group_max(const float* x, int n, float* maxima) {
  for (int begin = 0; begin < n; begin += kDrawGroup) {
    const int end = begin + kDrawGroup < n ? begin + kDrawGroup : n;
    F most = set1(kMinusInfinity);
    for (int i = begin; i < end; i += kLanes) most = max(load_logits(x, i, end), most);
    maxima[begin / kDrawGroup] = fold_max(most);
  }
}

float exp_sum(const float* logits, int n, const RowScale& row) {
  constexpr int kVocabularySpan = 1024;
  float total = 0.0f;
  for (int begin = 0; begin < n; begin += kVocabularySpan) {
    const int end = begin + kVocabularySpan < n ? begin + kVocabularySpan : n;
    F sum = zero();
    for (int i = begin; i < end; i += kLanes) {
      const F x = scaled(load_logits(logits, i, end), row);
      sum = sum + select(x < set1(1.0f), exp(x), zero());  // a NaN is below nothing
    }
    total = total + fold_sum(sum);
  }
  return total;
}

void exp_all(const float* x, int n, float* y) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, exp(load(x + i)));
  if (i < n) {
    float lanes[kLanes];
    store(lanes, exp(load_tail(x + i, n - i)));
    for (int lane = 0; i < n; ++i, ++lane) y[i] = lanes[lane];
  }
}

int gather(const float* logits, int first, int end, const RowScale& row, float least, float below,
           uint64_t* keys) {
  int count = 0;
  for (int i = first; i < end; i += kLanes) {
    const F x = scaled(load_logits(logits, i, end), row);
    // What is too small is put where what is too large is.
    const F wanted = select(x < set1(least), set1(below), x);
    if (!any(wanted < set1(below))) continue;
    float lanes[kLanes];
    store(lanes, wanted);
    for (int lane = 0; lane < kLanes && i + lane < end; ++lane) {
      uint32_t bits;
      __builtin_memcpy(&bits, &lanes[lane], sizeof(bits));
      // Written in any case and kept or not: no branch to guess wrong.
      keys[count] = (uint64_t{bits & 0x7fffffffu} << 32) | static_cast<uint32_t>(i + lane);
      count += lanes[lane] < below ? 1 : 0;
    }
  }
  return count;
}

// --- noise ---------------------------------------------------------------------------------------

LANES_INLINE I noise_bits(NoiseKey key, I id) {
  I h = id + iset1(static_cast<int32_t>(key.a));
  h = (h ^ shift_right<16>(h)) * iset1(0x2c1b3c6d);
  h = h ^ iset1(static_cast<int32_t>(key.b));
  h = (h ^ shift_right<12>(h)) * iset1(0x297a2d39);
  h = (h ^ shift_right<15>(h)) * iset1(static_cast<int32_t>(0x85ebca6bu));
  return h ^ shift_right<16>(h);
}

// (h + 1/2) / 2^32, rounded once: never 0.
LANES_INLINE F unit(I high, I low) {
  return fma(to_float(high), set1(65536.0f), to_float(low) + set1(0.5f)) * set1(0x1p-32f);
}
LANES_INLINE F unit(I h) { return unit(shift_right<16>(h), h & iset1(0xffff)); }
// 1 - unit(h), rounded once as well.
LANES_INLINE F unit_complement(I h) {
  return unit(iset1(0xffff) - shift_right<16>(h), iset1(0xffff) - (h & iset1(0xffff)));
}

// x = m 2^exponent with sqrt(1/2) <= m < sqrt(2), for positive normal x below 2^64.
struct Split {
  F m, exponent;
};
LANES_INLINE Split split(F x) {
  const I root_half = iset1(0x3f3504f3);
  const I shifted = as_int(x) - root_half + iset1(0x3f800000);
  return {as_float((shifted & iset1(0x7fffff)) + root_half),
          to_float(shift_right<23>(shifted) - iset1(127))};
}

// 2 atanh(t) = log((1 + t) / (1 - t)), for |t| < 0.172.
LANES_INLINE F twice_atanh(F t) {
  const F t2 = t * t;
  F p = set1(2.0f / 9.0f);
  p = fma(p, t2, set1(2.0f / 7.0f));
  p = fma(p, t2, set1(2.0f / 5.0f));
  p = fma(p, t2, set1(2.0f / 3.0f));
  p = fma(p, t2, set1(2.0f));
  return t * p;
}

// -log(-log(1 - unit(h))): between -3.14 and kMostNoise.
LANES_INLINE F gumbel(I h) {
  const F v = unit(h);
  const F w = unit_complement(h);
  const Split a = split(w);
  // Near w = 1 the difference 1 - m would have lost what v still has.
  const F one_less = select(w < set1(0.70710678f), set1(1.0f) - a.m, v);
  const F waited = fma(a.exponent, set1(-0.69314718f), twice_atanh(one_less / (set1(1.0f) + a.m)));
  const Split b = split(waited);
  const F t = (b.m - set1(1.0f)) / (b.m + set1(1.0f));
  return zero() - fma(b.exponent, set1(0.69314718f), twice_atanh(t));
}

// Above every score that id could reach: -log(1 - v) >= v, and the bits of v, read as an integer,
// are not above 2^23 (log2 v + 127). The 0.001 covers all rounding as long as |x| is below 30.
LANES_INLINE F score_bound(F x, I h) {
  return fma(to_float(as_int(unit(h))), set1(-0.69314718f / 8388608.0f),
             x + set1(127.0f * 0.69314718f + 0.001f));
}

void draw(const float* logits, int first, int end, const DrawArgs& args, Drawn* best) {
  Drawn found = *best;
  // Bounds decide only where the score to beat is one that needs x > -30.
  const auto to_beat = [&] { return found.score < -4.0f ? kMinusInfinity : found.score; };
  F bar = set1(to_beat());
  for (int i = first; i < end; i += kLanes) {
    const F x = scaled(load_logits(logits, i, end), args.row);
    const F allowed = select(x < set1(args.least), set1(kMinusInfinity), x);
    if (!any(bar < allowed + set1(kMostNoise))) continue;
    const I h = noise_bits(args.key, iset1(i) + lane_index());
    if (!any(bar < score_bound(allowed, h))) continue;

    float value[kLanes];
    float score[kLanes];
    store(value, allowed);
    store(score, allowed + gumbel(h));
    for (int lane = 0; lane < kLanes; ++lane) {
      const int id = i + lane;
      if (value[lane] == args.least && id > args.last_tie) continue;
      if (score[lane] > found.score || (score[lane] == found.score && id < found.id))
        found = {score[lane], id};
    }
    bar = set1(to_beat());
  }
  *best = found;
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
