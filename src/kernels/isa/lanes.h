// Sixteen lanes of float32 and int32, and the few operations that the kernel bodies need, for the
// instruction set this file is compiled for. A body written over these gives the same bits on all
// of them: every operation is one IEEE operation a lane, or exact integer arithmetic.
//
// Everything is in an unnamed namespace and forced inline: a copy compiled for AVX-512 must never
// be the one that the linker keeps for everybody.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/isa.h"

#if defined(PACELINE_EMULATE_AVX512)
// For tests on machines without AVX-512: the same intrinsics in portable C.
#include "kernels/isa/emulate_avx512.h"
#elif defined(PACELINE_LANES_AVX512) || defined(PACELINE_LANES_AVX2)
#include <immintrin.h>
#endif

#define LANES_INLINE [[gnu::always_inline]] inline

namespace paceline::PACELINE_ISA {
namespace {

inline constexpr int kLanes = 16;

#if defined(PACELINE_LANES_AVX512)

struct F {
  __m512 v;
};
struct I {
  __m512i v;
};
struct M {
  __mmask16 m;
};

LANES_INLINE F zero() { return {_mm512_setzero_ps()}; }
LANES_INLINE F set1(float x) { return {_mm512_set1_ps(x)}; }
LANES_INLINE F load(const float* p) { return {_mm512_loadu_ps(p)}; }
LANES_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
LANES_INLINE F operator+(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
LANES_INLINE F operator-(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
LANES_INLINE F operator*(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
LANES_INLINE F operator/(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
LANES_INLINE F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LANES_INLINE M operator<(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
LANES_INLINE F select(M m, F a, F b) { return {_mm512_mask_blend_ps(m.m, b.v, a.v)}; }
LANES_INLINE bool any(M m) { return m.m != 0; }

LANES_INLINE I iset1(int32_t x) { return {_mm512_set1_epi32(x)}; }
LANES_INLINE I iload(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
LANES_INLINE void istore(int32_t* p, I a) { _mm512_storeu_si512(p, a.v); }
LANES_INLINE I operator+(I a, I b) { return {_mm512_add_epi32(a.v, b.v)}; }
LANES_INLINE I operator-(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }
template <int N>
LANES_INLINE I shift_left(I a) {
  return {_mm512_slli_epi32(a.v, N)};
}
template <int N>
LANES_INLINE I shift_right(I a) {  // logical
  return {_mm512_srli_epi32(a.v, N)};
}
LANES_INLINE I operator&(I a, I b) { return {_mm512_and_si512(a.v, b.v)}; }
LANES_INLINE I operator^(I a, I b) { return {_mm512_xor_si512(a.v, b.v)}; }
LANES_INLINE I operator*(I a, I b) { return {_mm512_mullo_epi32(a.v, b.v)}; }  // low halves
LANES_INLINE F to_float(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
LANES_INLINE F as_float(I a) { return {_mm512_castsi512_ps(a.v)}; }
LANES_INLINE I as_int(F a) { return {_mm512_castps_si512(a.v)}; }
LANES_INLINE M operator<(I a, I b) { return {_mm512_cmplt_epi32_mask(a.v, b.v)}; }
LANES_INLINE I select(M m, I a, I b) { return {_mm512_mask_blend_epi32(m.m, b.v, a.v)}; }

LANES_INLINE I max(I a, I b) { return {_mm512_max_epi32(a.v, b.v)}; }
LANES_INLINE __m256i lower(I a) { return _mm512_castsi512_si256(a.v); }
LANES_INLINE __m256i upper(I a) { return _mm512_extracti64x4_epi64(a.v, 1); }

LANES_INLINE F load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LANES_INLINE void store_f16(uint16_t* p, F a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LANES_INLINE F load_bf16(const uint16_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16))};
}
// Lanes within int8, stored as bytes.
LANES_INLINE void store_i8(int8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
// Lanes folded 8-4-2-1.
LANES_INLINE float fold_sum(F a) {
  const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// --- integer dot products over a block of 32 inputs -------------------------------------------
// The sixteen outputs come in kParts parts, so that the sums of several rows fit into registers.
// Bytes: a part's outputs times four consecutive inputs.
inline constexpr int kParts = 1;
struct Bytes {
  __m512i v;
};
LANES_INLINE Bytes load_bytes(const std::byte* p, int /*part*/) { return {_mm512_loadu_si512(p)}; }
LANES_INLINE Bytes low_nibbles(Bytes b) { return {_mm512_and_si512(b.v, _mm512_set1_epi8(0x0f))}; }
LANES_INLINE Bytes high_nibbles(Bytes b) {
  return {_mm512_and_si512(_mm512_srli_epi16(b.v, 4), _mm512_set1_epi8(0x0f))};
}

#if defined(PACELINE_LANES_VNNI)

struct NibbleSum {
  __m512i v;
};
LANES_INLINE NibbleSum nibble_products(Bytes nibbles, int32_t x) {
  return {_mm512_dpbusd_epi32(_mm512_setzero_si512(), nibbles.v, _mm512_set1_epi32(x))};
}
LANES_INLINE void add_nibbles(NibbleSum& s, Bytes nibbles, int32_t x) {
  s.v = _mm512_dpbusd_epi32(s.v, nibbles.v, _mm512_set1_epi32(x));
}
LANES_INLINE I total(const NibbleSum (&s)[kParts]) { return {s[0].v}; }

// Signed weights become unsigned by adding 128, which the sum of x takes out again.
struct ByteWeights {
  __m512i v;
};
LANES_INLINE ByteWeights byte_weights(Bytes b) {
  return {_mm512_xor_si512(b.v, _mm512_set1_epi8(static_cast<char>(0x80)))};
}
struct ByteSum {
  __m512i v;
};
LANES_INLINE ByteSum byte_zero() { return {_mm512_setzero_si512()}; }
LANES_INLINE void add_bytes(ByteSum& s, ByteWeights w, int32_t x) {
  s.v = _mm512_dpbusd_epi32(s.v, w.v, _mm512_set1_epi32(x));
}
LANES_INLINE I total(const ByteSum (&s)[kParts], int32_t x_sum) {
  return {_mm512_sub_epi32(s[0].v, _mm512_set1_epi32(128 * x_sum))};
}

#else  // AVX-512 without VNNI

// Sums of pairs in int16: 8 additions of at most 2 * 15 * 127 stay below 32768.
struct NibbleSum {
  __m512i v;
};
LANES_INLINE NibbleSum nibble_products(Bytes nibbles, int32_t x) {
  return {_mm512_maddubs_epi16(nibbles.v, _mm512_set1_epi32(x))};
}
LANES_INLINE void add_nibbles(NibbleSum& s, Bytes nibbles, int32_t x) {
  s.v = _mm512_add_epi16(s.v, nibble_products(nibbles, x).v);
}
LANES_INLINE I total(const NibbleSum (&s)[kParts]) {
  return {_mm512_madd_epi16(s[0].v, _mm512_set1_epi16(1))};
}

// |w| * (x with the sign of w); |w| reaches 128 and |x| 127, so a pair stays below 32768.
struct ByteWeights {
  __m512i magnitude;
  __mmask64 negative;
};
LANES_INLINE ByteWeights byte_weights(Bytes b) {
  return {_mm512_abs_epi8(b.v), _mm512_movepi8_mask(b.v)};
}
struct ByteSum {
  __m512i v;
};
LANES_INLINE ByteSum byte_zero() { return {_mm512_setzero_si512()}; }
LANES_INLINE void add_bytes(ByteSum& s, ByteWeights w, int32_t x) {
  const __m512i all = _mm512_set1_epi32(x);
  const __m512i with_sign = _mm512_mask_sub_epi8(all, w.negative, _mm512_setzero_si512(), all);
  const __m512i pairs = _mm512_maddubs_epi16(w.magnitude, with_sign);
  s.v = _mm512_add_epi32(s.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
LANES_INLINE I total(const ByteSum (&s)[kParts], int32_t) { return {s[0].v}; }

#endif  // VNNI

#elif defined(PACELINE_LANES_AVX2)

struct F {
  __m256 lo, hi;
};
struct I {
  __m256i lo, hi;
};
struct M {
  __m256 lo, hi;
};

LANES_INLINE F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LANES_INLINE F set1(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
LANES_INLINE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LANES_INLINE void store(float* p, F a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
LANES_INLINE F operator+(F a, F b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
LANES_INLINE F operator-(F a, F b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
LANES_INLINE F operator*(F a, F b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
LANES_INLINE F operator/(F a, F b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
LANES_INLINE F fma(F a, F b, F c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
LANES_INLINE M operator<(F a, F b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
LANES_INLINE F select(M m, F a, F b) {
  return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}
LANES_INLINE bool any(M m) { return _mm256_movemask_ps(_mm256_or_ps(m.lo, m.hi)) != 0; }

LANES_INLINE I iset1(int32_t x) {
  const __m256i v = _mm256_set1_epi32(x);
  return {v, v};
}
LANES_INLINE I iload(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
LANES_INLINE void istore(int32_t* p, I a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
LANES_INLINE I operator+(I a, I b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
LANES_INLINE I operator-(I a, I b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
template <int N>
LANES_INLINE I shift_left(I a) {
  return {_mm256_slli_epi32(a.lo, N), _mm256_slli_epi32(a.hi, N)};
}
template <int N>
LANES_INLINE I shift_right(I a) {  // logical
  return {_mm256_srli_epi32(a.lo, N), _mm256_srli_epi32(a.hi, N)};
}
LANES_INLINE I operator&(I a, I b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
LANES_INLINE I operator^(I a, I b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
LANES_INLINE I operator*(I a, I b) {  // low halves
  return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)};
}
LANES_INLINE F to_float(I a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
LANES_INLINE F as_float(I a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
LANES_INLINE I as_int(F a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
LANES_INLINE M operator<(I a, I b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.lo, a.lo)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.hi, a.hi))};
}
LANES_INLINE I select(M m, I a, I b) { return as_int(select(m, as_float(a), as_float(b))); }

LANES_INLINE I max(I a, I b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
LANES_INLINE __m256i lower(I a) { return a.lo; }
LANES_INLINE __m256i upper(I a) { return a.hi; }

#if defined(__F16C__)
LANES_INLINE F load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
LANES_INLINE void store_f16(uint16_t* p, F a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kNearest));
}
#else
// The conversions of base/types.cpp on integers. A half's exponent and mantissa, moved into a
// float's place, are short of the value by 2^112; multiplying by that is exact, denormals too.
LANES_INLINE __m256 half_to_float(const uint16_t* p) {
  const __m256i half = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i magnitude = _mm256_and_si256(half, _mm256_set1_epi32(0x7fff));
  const __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(half, magnitude), 16);
  const __m256 scaled = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(magnitude, 13)),
                                      _mm256_set1_ps(0x1p112f));
  // Infinities and NaNs keep their mantissa under the largest exponent.
  const __m256i special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7bff));
  const __m256i wide =
      _mm256_or_si256(_mm256_slli_epi32(magnitude, 13), _mm256_set1_epi32(0x7f800000));
  const __m256 value =
      _mm256_blendv_ps(scaled, _mm256_castsi256_ps(wide), _mm256_castsi256_ps(special));
  return _mm256_or_ps(value, _mm256_castsi256_ps(sign));
}
LANES_INLINE __m128i float_to_half(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i sign = _mm256_srli_epi32(_mm256_xor_si256(bits, magnitude), 16);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 13), _mm256_set1_epi32(1));
  __m256i half = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(magnitude, odd), _mm256_set1_epi32(0xfff - 0x38000000)),
      13);
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x38800000), magnitude);
  const __m256i denormal = _mm256_sub_epi32(
      _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(0.5f))),
      _mm256_set1_epi32(0x3f000000));
  half = _mm256_blendv_epi8(half, denormal, small);
  const __m256i large = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x477fffff));
  half = _mm256_blendv_epi8(half, _mm256_set1_epi32(0x7c00), large);
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  half = _mm256_blendv_epi8(half, _mm256_set1_epi32(0x7e00), nan);
  half = _mm256_or_si256(half, sign);
  return _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
LANES_INLINE F load_f16(const uint16_t* p) { return {half_to_float(p), half_to_float(p + 8)}; }
LANES_INLINE void store_f16(uint16_t* p, F a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), float_to_half(a.lo));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), float_to_half(a.hi));
}
#endif
LANES_INLINE __m256 bf16_to_float(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
LANES_INLINE F load_bf16(const uint16_t* p) { return {bf16_to_float(p), bf16_to_float(p + 8)}; }
LANES_INLINE void store_i8(int8_t* p, I a) {
  // packs works within 128-bit halves: a.lo and a.hi interleave, the permutation puts them right.
  const __m256i words = _mm256_packs_epi32(a.lo, a.hi);
  const __m256i bytes = _mm256_packs_epi16(words, words);
  const __m256i in_order =
      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(in_order));
}
LANES_INLINE float fold_sum(F a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline constexpr int kParts = 2;
struct Bytes {
  __m256i v;
};
LANES_INLINE Bytes load_bytes(const std::byte* p, int part) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + part)};
}
LANES_INLINE Bytes low_nibbles(Bytes b) { return {_mm256_and_si256(b.v, _mm256_set1_epi8(0x0f))}; }
LANES_INLINE Bytes high_nibbles(Bytes b) {
  return {_mm256_and_si256(_mm256_srli_epi16(b.v, 4), _mm256_set1_epi8(0x0f))};
}
// Sums of pairs in int16: 8 additions of at most 2 * 15 * 127 stay below 32768.
struct NibbleSum {
  __m256i v;
};
LANES_INLINE NibbleSum nibble_products(Bytes nibbles, int32_t x) {
  return {_mm256_maddubs_epi16(nibbles.v, _mm256_set1_epi32(x))};
}
// The empty instruction keeps each sum in its register: left alone, the compiler adds products to
// each other first and the sums in memory.
LANES_INLINE void add_nibbles(NibbleSum& s, Bytes nibbles, int32_t x) {
  s.v = _mm256_add_epi16(s.v, nibble_products(nibbles, x).v);
  asm("" : "+x"(s.v));
}
LANES_INLINE I total(const NibbleSum (&s)[kParts]) {
  const __m256i ones = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(s[0].v, ones), _mm256_madd_epi16(s[1].v, ones)};
}

// |w| * (x with the sign of w); |w| reaches 128 and |x| 127, so a pair stays below 32768.
struct ByteWeights {
  __m256i magnitude, signs;
};
LANES_INLINE ByteWeights byte_weights(Bytes b) { return {_mm256_abs_epi8(b.v), b.v}; }
struct ByteSum {
  __m256i v;
};
LANES_INLINE ByteSum byte_zero() { return {_mm256_setzero_si256()}; }
LANES_INLINE void add_bytes(ByteSum& s, ByteWeights w, int32_t x) {
  const __m256i with_sign = _mm256_sign_epi8(_mm256_set1_epi32(x), w.signs);
  const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, with_sign);
  s.v = _mm256_add_epi32(s.v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  asm("" : "+x"(s.v));
}
LANES_INLINE I total(const ByteSum (&s)[kParts], int32_t) { return {s[0].v, s[1].v}; }

#else
#include "kernels/isa/lanes_scalar.inc"
#endif

#if defined(PACELINE_LANES_AVX512) || defined(PACELINE_LANES_AVX2)
// Exact in any order.
LANES_INLINE int32_t fold_max(I a) {
  const __m256i eight = _mm256_max_epi32(lower(a), upper(a));
  __m128i x = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0xb1));
  return _mm_cvtsi128_si32(x);
}
LANES_INLINE int32_t fold_sum(I a) {
  const __m256i eight = _mm256_add_epi32(lower(a), upper(a));
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1));
  return _mm_cvtsi128_si32(x);
}
#endif

// The last elements of a row, padded with +0.
LANES_INLINE F load_tail(const float* p, int n) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}

// max as docs/numerics.md defines it: a > b ? a : b.
LANES_INLINE F max(F a, F b) { return select(b < a, a, b); }

// Folded 8-4-2-1. The instruction takes its second operand unless the first is larger, as max does.
LANES_INLINE float fold_max(F a) {
  float lanes[kLanes];
  store(lanes, a);
#if defined(PACELINE_LANES_AVX512) || defined(PACELINE_LANES_AVX2)
  const __m256 eight = _mm256_max_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
#endif
}

// Round to nearest, ties to even; a NaN stays a quiet NaN.
LANES_INLINE void store_bf16(uint16_t* p, F a) {
  const I bits = as_int(a);
  const I odd = shift_right<16>(bits) & iset1(1);
  const I rounded = shift_right<16>(bits + iset1(0x7fff) + odd);
  const M is_nan = iset1(0x7f800000) < (bits & iset1(0x7fffffff));
  const I nan = shift_right<16>(bits & iset1(static_cast<int32_t>(0xff800000u))) + iset1(0x40);
  int32_t lanes[kLanes];
  istore(lanes, select(is_nan, nan, rounded));
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(lanes[i]);
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
