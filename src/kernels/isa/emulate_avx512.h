// The AVX-512 intrinsics that lanes.h uses, on a machine that has AVX2 only: SIMDe's portable ones,
// and those that its packaged version lacks built from two AVX2 halves. Tests compile the AVX-512
// kernels against this, so that their loops and packing are checked on every x86 machine.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <immintrin.h>
#include <simde/x86/avx512.h>

namespace paceline::emulate {
namespace {

inline simde__m512i join(__m256i low, __m256i high) {
  simde__m512i r;
  __builtin_memcpy(&r, &low, 32);
  __builtin_memcpy(reinterpret_cast<char*>(&r) + 32, &high, 32);
  return r;
}
inline __m256i half(simde__m512i a, int which) {
  __m256i r;
  __builtin_memcpy(&r, reinterpret_cast<const char*>(&a) + 32 * which, 32);
  return r;
}
inline simde__m512 join(__m256 low, __m256 high) {
  simde__m512 r;
  __builtin_memcpy(&r, &low, 32);
  __builtin_memcpy(reinterpret_cast<char*>(&r) + 32, &high, 32);
  return r;
}
inline __m256 half(simde__m512 a, int which) {
  __m256 r;
  __builtin_memcpy(&r, reinterpret_cast<const char*>(&a) + 32 * which, 32);
  return r;
}

inline simde__m512 cvtph_ps(__m256i a) {
  return join(_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
              _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
}
inline __m256i cvtps_ph(simde__m512 a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return _mm256_set_m128i(_mm256_cvtps_ph(half(a, 1), kNearest),
                          _mm256_cvtps_ph(half(a, 0), kNearest));
}
inline simde__m512i cvtepu16_epi32(__m256i a) {
  return join(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
              _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1)));
}
inline simde__m512 cvtepi32_ps(simde__m512i a) {
  return join(_mm256_cvtepi32_ps(half(a, 0)), _mm256_cvtepi32_ps(half(a, 1)));
}
inline __m128i cvtepi32_epi8(simde__m512i a) {
  int32_t wide[16];
  int8_t narrow[16];
  __builtin_memcpy(wide, &a, 64);
  for (int i = 0; i < 16; ++i) narrow[i] = static_cast<int8_t>(wide[i]);
  __m128i r;
  __builtin_memcpy(&r, narrow, 16);
  return r;
}
inline uint16_t cmplt_epi32_mask(simde__m512i a, simde__m512i b) {
  int32_t x[16];
  int32_t y[16];
  __builtin_memcpy(x, &a, 64);
  __builtin_memcpy(y, &b, 64);
  uint16_t mask = 0;
  for (int i = 0; i < 16; ++i) mask = static_cast<uint16_t>(mask | ((x[i] < y[i]) << i));
  return mask;
}

}  // namespace
}  // namespace paceline::emulate

// NOLINTBEGIN(bugprone-reserved-identifier): the intrinsics' own names.
#define _mm512_cvtph_ps(a) ::paceline::emulate::cvtph_ps(a)
#define _mm512_cvtps_ph(a, rounding) ::paceline::emulate::cvtps_ph(a)
#define _mm512_cvtepu16_epi32(a) ::paceline::emulate::cvtepu16_epi32(a)
#define _mm512_cvtepi32_ps(a) ::paceline::emulate::cvtepi32_ps(a)
#define _mm512_cvtepi32_epi8(a) ::paceline::emulate::cvtepi32_epi8(a)
#define _mm512_cmplt_epi32_mask(a, b) ::paceline::emulate::cmplt_epi32_mask(a, b)
// The packaged alias takes the wrong number of arguments.
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)
// NOLINTEND(bugprone-reserved-identifier)
