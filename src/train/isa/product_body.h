// Products of training: packing of operands and the tile that multiplies them.
#pragma once

#include "kernels/isa/lanes.h"
#include "train/table.h"

namespace paceline::PACELINE_ISA {
namespace {

using train::ProductArgs;

#if defined(PACELINE_LANES_AVX512)
inline constexpr int kPanelLanes = 2;  // vectors of sixteen columns in a panel
inline constexpr int kTileRows = 12;   // 24 sums, two vectors of b and one of a: 27 of 32 registers
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kPanelLanes = 1;
inline constexpr int kTileRows = 6;  // 12 sums of eight lanes of 16 registers
#else
inline constexpr int kPanelLanes = 1;
inline constexpr int kTileRows = 2;
#endif
inline constexpr int kPanel = kPanelLanes * kLanes;
// Steps at a time: a panel of b then takes 24 KiB and stays in the first-level cache.
inline constexpr int kStepBlock = 192;

#if defined(__AVX512BF16__)
inline constexpr int kPerUnit = 2;
using Units = __m512i;
LANES_INLINE Units load_units(const uint32_t* p) { return _mm512_loadu_si512(p); }
LANES_INLINE Units set_units(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
LANES_INLINE F multiply_add(Units a, Units b, F sum) {
  return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b))};
}
#else
inline constexpr int kPerUnit = 1;
using Units = F;
LANES_INLINE Units load_units(const uint32_t* p) { return load(reinterpret_cast<const float*>(p)); }
LANES_INLINE Units set_units(uint32_t x) {
  float value;
  __builtin_memcpy(&value, &x, sizeof(value));
  return set1(value);
}
LANES_INLINE F multiply_add(Units a, Units b, F sum) { return fma(a, b, sum); }
#endif

// Rows by one panel. ByRow: a's steps stand side by side, else its rows.
template <int Rows, bool ByRow>
LANES_INLINE void tile(const uint32_t* a, int64_t a_row, int64_t a_step, const uint32_t* b,
                       int steps, float* c, int64_t c_row, int cols, bool add) {
  F sum[Rows][kPanelLanes];
  float edge[Rows * kPanel];
  const bool whole = cols >= kPanel;
  if (!whole) {
    for (int r = 0; r < Rows; ++r)
      for (int i = 0; i < kPanel; ++i)
        edge[r * kPanel + i] = add && i < cols ? c[r * c_row + i] : 0;
  }
  const float* from = whole ? c : edge;
  const int64_t from_row = whole ? c_row : kPanel;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int i = 0; i < kPanelLanes; ++i)
      sum[r][i] = add ? load(from + r * from_row + i * kLanes) : zero();

  for (int k = 0; k < steps; ++k) {
    Units right[kPanelLanes];
#pragma GCC unroll 2
    for (int i = 0; i < kPanelLanes; ++i) right[i] = load_units(b + i * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Units left = set_units(ByRow ? a[r * a_row] : a[r]);
#pragma GCC unroll 2
      for (int i = 0; i < kPanelLanes; ++i) sum[r][i] = multiply_add(left, right[i], sum[r][i]);
    }
    a += ByRow ? 1 : a_step;
    b += kPanel;
  }

  float* to = whole ? c : edge;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int i = 0; i < kPanelLanes; ++i) store(to + r * from_row + i * kLanes, sum[r][i]);
  if (whole) return;
  for (int r = 0; r < Rows; ++r)
    for (int i = 0; i < cols; ++i) c[r * c_row + i] = edge[r * kPanel + i];
}

template <bool ByRow>
void product_blocks(const ProductArgs& p) {
  for (int step = 0; step < p.steps || step == 0; step += kStepBlock) {
    const int steps = p.steps - step < kStepBlock ? p.steps - step : kStepBlock;
    const bool add = p.add || step > 0;
    const uint32_t* a = p.a + step * p.a_step;
    for (int col = 0; col < p.cols; col += kPanel) {
      const uint32_t* b = p.b + col / kPanel * p.b_panel + static_cast<int64_t>(step) * kPanel;
      float* c = p.c + col;
      const int cols = p.cols - col;
      int row = 0;
      for (; row + kTileRows <= p.rows; row += kTileRows)
        tile<kTileRows, ByRow>(a + row * p.a_row, p.a_row, p.a_step, b, steps, c + row * p.c_row,
                               p.c_row, cols, add);
      if constexpr (kTileRows > 4)
        for (; row + 4 <= p.rows; row += 4)
          tile<4, ByRow>(a + row * p.a_row, p.a_row, p.a_step, b, steps, c + row * p.c_row, p.c_row,
                         cols, add);
      for (; row < p.rows; ++row)
        tile<1, ByRow>(a + row * p.a_row, p.a_row, p.a_step, b, steps, c + row * p.c_row, p.c_row,
                       cols, add);
    }
  }
}

void product(const ProductArgs& p) {
  if (p.a_step == 1)
    product_blocks<true>(p);
  else
    product_blocks<false>(p);
}

// --- operands ------------------------------------------------------------------------------------

// Two floats as a unit of bf16, rounded to nearest even; or the first one as it is.
LANES_INLINE uint32_t unit_of(float first, float second) {
  if constexpr (kPerUnit == 1) {
    uint32_t bits;
    __builtin_memcpy(&bits, &first, sizeof(bits));
    return bits;
  }
  const float values[2] = {first, second};
  uint32_t halves[2];
  for (int i = 0; i < 2; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, &values[i], sizeof(bits));
    halves[i] = values[i] != values[i] ? 0x7fc0 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  }
  return halves[0] | halves[1] << 16;
}

void left_rows(const float* x, int64_t x_row, int rows, int n, float scale, uint32_t* units,
               int64_t pitch) {
  for (int r = 0; r < rows; ++r, x += x_row, units += pitch) {
    int i = 0;
#if defined(__AVX512BF16__)
    for (; i + 2 * kLanes <= n; i += 2 * kLanes)
      _mm512_storeu_si512(units + i / 2, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
                                             (load(x + i + kLanes) * set1(scale)).v,
                                             (load(x + i) * set1(scale)).v)));
#endif
    for (; i < n; i += kPerUnit)
      units[i / kPerUnit] = unit_of(x[i] * scale, i + 1 < n ? x[i + 1] * scale : 0.0f);
  }
}

#if defined(__AVX512BF16__)
// Sixteen units of two rows: lane i holds a[i] and b[i].
LANES_INLINE __m512i pair_rows(const float* a, const float* b) {
  const __m512i joined =
      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(b), _mm512_loadu_ps(a)));
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), joined);
}
#endif

// Units of columns [0, n) of rows k and, of pairs, k + 1; zeros where there is no such row.
LANES_INLINE void join_rows(const float* x, int64_t x_row, int k, int n_sum, int n,
                            uint32_t* units) {
  const float* a = x + k * x_row;
  const bool has_second = kPerUnit == 2 && k + 1 < n_sum;
  const float* b = has_second ? a + x_row : a;
  int i = 0;
#if defined(__AVX512BF16__)
  if (has_second)
    for (; i + kLanes <= n; i += kLanes) _mm512_storeu_si512(units + i, pair_rows(a + i, b + i));
#endif
  for (; i < n; ++i) units[i] = unit_of(a[i], has_second ? b[i] : 0.0f);
}

void left_columns(const float* x, int64_t x_row, int n_sum, int rows, uint32_t* units,
                  int64_t pitch) {
  for (int k = 0; k < n_sum; k += kPerUnit, units += pitch)
    join_rows(x, x_row, k, n_sum, rows, units);
}

void right_rows(const float* x, int64_t x_row, int cols, int n_sum, int first, int last,
                uint32_t* units) {
  const int steps = (n_sum + kPerUnit - 1) / kPerUnit;
  for (int panel = first; panel < last; ++panel) {
    uint32_t* to = units + static_cast<int64_t>(panel) * steps * kPanel;
    for (int i = 0; i < kPanel; ++i) {
      const int col = panel * kPanel + i;
      const float* from = x + col * x_row;
      if (col >= cols) {
        for (int step = 0; step < steps; ++step) to[step * kPanel + i] = 0;
        continue;
      }
      for (int k = 0; k < n_sum; k += kPerUnit)
        to[k / kPerUnit * kPanel + i] = unit_of(from[k], k + 1 < n_sum ? from[k + 1] : 0.0f);
    }
  }
}

void right_columns(const float* x, int64_t x_row, int cols, int n_sum, int first, int last,
                   uint32_t* units) {
  const int steps = (n_sum + kPerUnit - 1) / kPerUnit;
  for (int panel = first; panel < last; ++panel) {
    uint32_t* to = units + static_cast<int64_t>(panel) * steps * kPanel;
    const int begin = panel * kPanel;
    const int n = cols - begin < kPanel ? cols - begin : kPanel;
    for (int k = 0; k < n_sum; k += kPerUnit, to += kPanel) {
      join_rows(x + begin, x_row, k, n_sum, n, to);
      for (int i = n; i < kPanel; ++i) to[i] = 0;
    }
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
