// Products y = x * W^T over packed tiles of 16 outputs; docs/numerics.md, rules 1 and 4.
//
// Lanes are outputs. An output's chain of operations runs over the inputs in ascending order,
// whatever the number of rows R and of tiles T that stand side by side in registers: those only
// hide latency and share the loads of weights.
#pragma once

#include "kernels/isa/lanes.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

#if defined(PACELINE_LANES_AVX512)
inline constexpr int kFloatRows = 8;
inline constexpr int kQuantRows = 8;
inline constexpr int kNibbleUnroll = 1;
constexpr int float_tiles(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kFloatRows = 6;
inline constexpr int kQuantRows = 6;
inline constexpr int kNibbleUnroll = 3;  // a block's sums as one piece of code: a tenth faster
constexpr int float_tiles(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
#else  // nothing to keep in registers: as little code as possible
inline constexpr int kFloatRows = 1;
inline constexpr int kQuantRows = 1;
inline constexpr int kNibbleUnroll = 1;
constexpr int float_tiles(int) { return 1; }
#endif

// How far ahead of its use a line of block-quantised weights is asked for. One tile is one stream,
// and at one row the processor's own prefetcher does not run far enough ahead of it.
inline constexpr int kPrefetchBytes = 2048;

// Calls f with R as a compile-time constant.
template <int Max, class Function>
LANES_INLINE void with_rows(int rows, Function f) {
  if constexpr (Max > 1) {
    if (rows < Max) {
      with_rows<Max - 1>(rows, f);
      return;
    }
  }
  f.template operator()<Max>();
}

// Calls f(group, first row, rows) for pieces of at most Max rows within groups of kRowGroup, as
// even as they come.
template <int Max, class Function>
LANES_INLINE void for_row_pieces(int rows, Function f) {
  for (int base = 0; base < rows; base += kRowGroup) {
    const int in_group = rows - base < kRowGroup ? rows - base : kRowGroup;
    const int pieces = (in_group + Max - 1) / Max;
    for (int i = 0; i < pieces; ++i) {
      const int first = in_group * i / pieces;
      const int end = in_group * (i + 1) / pieces;
      f(base, in_group, first, end - first);
    }
  }
}

LANES_INLINE void store_outputs(const MatmulArgs& a, int row, int tile, F acc) {
  float* y = a.y + static_cast<int64_t>(row) * a.y_stride + tile * kTileOutputs;
  const int left = a.n_out - tile * kTileOutputs;
  if (left >= kTileOutputs) {
    if (a.bias != nullptr) acc = acc + load(a.bias + tile * kTileOutputs);
    if (a.store == Store::Add) acc = load(y) + acc;
    store(y, acc);
    return;
  }
  float lanes[kTileOutputs];
  store(lanes, acc);
  for (int i = 0; i < left; ++i) {
    float value = lanes[i];
    if (a.bias != nullptr) value = value + a.bias[tile * kTileOutputs + i];
    if (a.store == Store::Add) value = y[i] + value;
    y[i] = value;
  }
}

// --- float weights ------------------------------------------------------------------------------

struct WeightsF32 {
  static constexpr int kStep = 1;  // inputs a load yields
  LANES_INLINE static void load_step(const std::byte* tile, int k, F out[1]) {
    out[0] = load(reinterpret_cast<const float*>(tile) + static_cast<int64_t>(k) * 16);
  }
  LANES_INLINE static F load_last(const std::byte*, int) { return zero(); }  // no odd tail
};
struct WeightsF16 {
  static constexpr int kStep = 1;
  LANES_INLINE static void load_step(const std::byte* tile, int k, F out[1]) {
    out[0] = load_f16(reinterpret_cast<const uint16_t*>(tile) + static_cast<int64_t>(k) * 16);
  }
  LANES_INLINE static F load_last(const std::byte*, int) { return zero(); }
};
// Two inputs of one output share a 32-bit word: one shift or mask widens each.
struct WeightsBF16 {
  static constexpr int kStep = 2;
  LANES_INLINE static void load_step(const std::byte* tile, int k, F out[2]) {
    const I pair = iload(reinterpret_cast<const int32_t*>(tile) + static_cast<int64_t>(k) * 8);
    out[0] = as_float(shift_left<16>(pair));
    out[1] = as_float(pair & iset1(static_cast<int32_t>(0xffff0000u)));
  }
  LANES_INLINE static F load_last(const std::byte* tile, int k) {
    return as_float(shift_left<16>(
        iload(reinterpret_cast<const int32_t*>(tile) + static_cast<int64_t>(k) * 8)));
  }
};

// x: input k of row r at x[k * x_rows + r].
template <class W, int R, int T>
[[gnu::noinline]] void float_tiles_product(const MatmulArgs& a, const float* x, int x_rows, int row,
                                           int tile) {
  F acc[T][R];
  const std::byte* w[T];
  for (int t = 0; t < T; ++t) {
    w[t] = a.w + static_cast<size_t>(tile + t) * a.tile_bytes;
    for (int r = 0; r < R; ++r) acc[t][r] = zero();
  }
  int k = 0;
  for (; k + W::kStep <= a.n_in; k += W::kStep) {
    F weights[T][W::kStep];
    for (int t = 0; t < T; ++t) W::load_step(w[t], k, weights[t]);
    for (int s = 0; s < W::kStep; ++s) {
      for (int r = 0; r < R; ++r) {
        const F in = set1(x[static_cast<int64_t>(k + s) * x_rows + r]);
        for (int t = 0; t < T; ++t) acc[t][r] = fma(in, weights[t][s], acc[t][r]);
      }
    }
  }
  if (k < a.n_in) {
    for (int t = 0; t < T; ++t) {
      const F weights = W::load_last(w[t], k);
      for (int r = 0; r < R; ++r)
        acc[t][r] = fma(set1(x[static_cast<int64_t>(k) * x_rows + r]), weights, acc[t][r]);
    }
  }
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) store_outputs(a, row + r, tile + t, acc[t][r]);
}

template <class W>
void matmul_float(const MatmulArgs& a, int first_tile, int last_tile) {
  constexpr int kChunk = 8;  // tiles that are finished for all rows before the next are begun
  for (int chunk = first_tile; chunk < last_tile; chunk += kChunk) {
    const int chunk_end = chunk + kChunk < last_tile ? chunk + kChunk : last_tile;
    for_row_pieces<kFloatRows>(
        a.rows, [&](int base, int in_group, int first, int rows) __attribute__((always_inline)) {
          const float* x =
              static_cast<const float*>(a.x) + static_cast<int64_t>(base) * a.n_in + first;
          with_rows<kFloatRows>(
              rows, [&]<int R>() __attribute__((always_inline)) {
                constexpr int kTiles = float_tiles(R);
                int tile = chunk;
                for (; tile + kTiles <= chunk_end; tile += kTiles)
                  float_tiles_product<W, R, kTiles>(a, x, in_group, base + first, tile);
                for (; tile < chunk_end; ++tile)
                  float_tiles_product<W, R, 1>(a, x, in_group, base + first, tile);
              });
        });
  }
}

// --- block-quantised weights --------------------------------------------------------------------

// Four int8 activations as one word, which the lanes broadcast.
LANES_INLINE int32_t word(const int8_t* q) {
  int32_t x;
  __builtin_memcpy(&x, q, sizeof(x));
  return x;
}

// A block of a tile: 16 scales, for Q4_1 16 minima, then 32 x 16 weights as vectors of 16 outputs
// by 4 inputs. A vector of nibbles holds inputs 4v .. 4v + 3 low and 16 + 4v .. 16 + 4v + 3 high.
struct BlockQ8_0 {
  static constexpr int kBytes = 2 * 16 + 512;
  template <int R>
  LANES_INLINE static void add(const std::byte* block, const int8_t* q, const float* d,
                               const float*, const int32_t* sum, F acc[R]) {
    ByteSum s[R][kParts];
    for (int r = 0; r < R; ++r)
      for (int part = 0; part < kParts; ++part) s[r][part] = byte_zero();
#pragma GCC unroll 1  // the sums fill the registers
    for (int v = 0; v < 8; ++v) {
      ByteWeights w[kParts];
      for (int part = 0; part < kParts; ++part)
        w[part] = byte_weights(load_bytes(block + 32 + 64 * v, part));
      for (int r = 0; r < R; ++r)
        for (int part = 0; part < kParts; ++part)
          add_bytes(s[r][part], w[part], word(q + 32 * r + 4 * v));
    }
    const F scale = load_f16(reinterpret_cast<const uint16_t*>(block));
    for (int r = 0; r < R; ++r)
      acc[r] = fma(to_float(total(s[r], sum[r])), scale * set1(d[r]), acc[r]);
  }
};

template <int R>
LANES_INLINE void sum_nibbles(const std::byte* weights, const int8_t* q,
                              NibbleSum (&s)[R][kParts]) {
  for (int part = 0; part < kParts; ++part) {
    const Bytes w = low_nibbles(load_bytes(weights, part));
    for (int r = 0; r < R; ++r) s[r][part] = nibble_products(w, word(q + 32 * r));
  }
  const auto add = [&](auto nibbles, int v, int input) __attribute__((always_inline)) {
    Bytes w[kParts];
    for (int part = 0; part < kParts; ++part) w[part] = nibbles(load_bytes(weights + 64 * v, part));
    for (int r = 0; r < R; ++r)
      for (int part = 0; part < kParts; ++part)
        add_nibbles(s[r][part], w[part], word(q + 32 * r + input));
  };
  add(high_nibbles, 0, 16);
#pragma GCC unroll kNibbleUnroll
  for (int v = 1; v < 4; ++v) {
    add(low_nibbles, v, 4 * v);
    add(high_nibbles, v, 16 + 4 * v);
  }
}

struct BlockQ4_0 {
  static constexpr int kBytes = 2 * 16 + 256;
  template <int R>
  LANES_INLINE static void add(const std::byte* block, const int8_t* q, const float* d,
                               const float*, const int32_t* sum, F acc[R]) {
    NibbleSum s[R][kParts];
    sum_nibbles<R>(block + 32, q, s);
    const F scale = load_f16(reinterpret_cast<const uint16_t*>(block));
    for (int r = 0; r < R; ++r)  // weights are n - 8
      acc[r] = fma(to_float(total(s[r]) - iset1(8 * sum[r])), scale * set1(d[r]), acc[r]);
  }
};

struct BlockQ4_1 {
  static constexpr int kBytes = 4 * 16 + 256;
  template <int R>
  LANES_INLINE static void add(const std::byte* block, const int8_t* q, const float* d,
                               const float* scaled_sum, const int32_t*, F acc[R]) {
    NibbleSum s[R][kParts];
    sum_nibbles<R>(block + 64, q, s);
    const F scale = load_f16(reinterpret_cast<const uint16_t*>(block));
    const F minimum = load_f16(reinterpret_cast<const uint16_t*>(block + 32));
    for (int r = 0; r < R; ++r) {
      acc[r] = fma(to_float(total(s[r])), scale * set1(d[r]), acc[r]);
      acc[r] = fma(minimum, set1(scaled_sum[r]), acc[r]);
    }
  }
};

template <class Block, int R>
[[gnu::noinline]] void quant_tile_product(const MatmulArgs& a, int base, int in_group, int first,
                                          int tile) {
  // The first rows that meet a tile stream it from memory; those behind them, which find it in the
  // cache, ask for the next tile in the meantime.
  const size_t ahead = base + first == 0 ? kPrefetchBytes : a.tile_bytes;
  const int n_blocks = a.n_in / kQuantBlock;
  const int64_t before = static_cast<int64_t>(base) * (a.n_in / kQuantBlock) + first;
  const int8_t* q = static_cast<const int8_t*>(a.x) + before * kQuantBlock;
  const float* d = a.x_scale + before;
  const float* scaled_sum = a.x_scaled_sum + before;
  const int32_t* sum = a.x_sum + before;
  const std::byte* block = a.w + static_cast<size_t>(tile) * a.tile_bytes;
  F acc[R];
  for (int r = 0; r < R; ++r) acc[r] = zero();
  for (int b = 0; b < n_blocks; ++b) {
    for (int line = 0; line < Block::kBytes; line += 64) __builtin_prefetch(block + ahead + line);
    Block::template add<R>(block, q, d, scaled_sum, sum, acc);
    block += Block::kBytes;
    q += in_group * kQuantBlock;
    d += in_group;
    scaled_sum += in_group;
    sum += in_group;
  }
  for (int r = 0; r < R; ++r) store_outputs(a, base + first + r, tile, acc[r]);
}

template <class Block>
void matmul_quant(const MatmulArgs& a, int first_tile, int last_tile) {
  for (int tile = first_tile; tile < last_tile; ++tile) {
    for_row_pieces<kQuantRows>(
        a.rows, [&](int base, int in_group, int first, int rows) __attribute__((always_inline)) {
          with_rows<kQuantRows>(
              rows, [&]<int R>() __attribute__((always_inline)) {
                quant_tile_product<Block, R>(a, base, in_group, first, tile);
              });
        });
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
