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
inline constexpr int kFloatRows = 6;
inline constexpr int kQuantRows = 8;
#if defined(PACELINE_LANES_VNNI)
// More rows than those take tiles in pairs: a word of activations is broadcast once for both, where
// broadcasts, one a product, would keep the load ports as busy as the products do theirs.
inline constexpr int kPairRows = 6;
#else
inline constexpr int kPairRows = 0;
#endif
inline constexpr int kNibbleUnroll = 1;
constexpr int float_tiles(int) { return 4; }
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kFloatRows = 5;  // a sixth row of bf16 no longer fits the registers
inline constexpr int kQuantRows = 6;
inline constexpr int kPairRows = 0;
inline constexpr int kNibbleUnroll = 3;  // a block's sums as one piece of code: a tenth faster
constexpr int float_tiles(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
#else  // nothing to keep in registers: as little code as possible
inline constexpr int kFloatRows = 1;
inline constexpr int kQuantRows = 1;
inline constexpr int kPairRows = 0;
inline constexpr int kNibbleUnroll = 1;
constexpr int float_tiles(int) { return 1; }
#endif

// How far ahead of its use a line of weights is asked for. The processor's own prefetcher does not
// run far enough ahead of a tile, and begins anew with every tile.
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

// A line of a tile: the 16 weights of an input, of two for bf16.
struct WeightsF32 {
  static constexpr int kInputs = 1;
  static constexpr int kLineBytes = 64;
  LANES_INLINE static void load_line(const std::byte* line, F out[1]) {
    out[0] = load(reinterpret_cast<const float*>(line));
  }
};
struct WeightsF16 {
  static constexpr int kInputs = 1;
  static constexpr int kLineBytes = 32;
  LANES_INLINE static void load_line(const std::byte* line, F out[1]) {
    out[0] = load_f16(reinterpret_cast<const uint16_t*>(line));
  }
};
// Two inputs of one output share a 32-bit word: one shift or mask widens each.
struct WeightsBF16 {
  static constexpr int kInputs = 2;
  static constexpr int kLineBytes = 64;
  LANES_INLINE static void load_line(const std::byte* line, F out[2]) {
    const I pair = iload(reinterpret_cast<const int32_t*>(line));
    out[0] = as_float(shift_left<16>(pair));
    out[1] = as_float(pair & iset1(static_cast<int32_t>(0xffff0000u)));
  }
};

// Tiles from `tile` on, up to the end of its band.
struct TileLines {
  const std::byte* first;  // line of `tile`; that of the tile beside it follows
  size_t step;             // bytes to the next lines
};
LANES_INLINE TileLines lines_of(const MatmulArgs& a, int tile, size_t line_bytes) {
  const int band = tile / kBandTiles * kBandTiles;
  const int left = (a.n_out + kTileOutputs - 1) / kTileOutputs - band;
  const int width = left < kBandTiles ? left : kBandTiles;
  return {a.w + static_cast<size_t>(band) * a.tile_bytes + (tile - band) * line_bytes,
          width * line_bytes};
}

inline constexpr int kFloatChunk = 8;  // tiles finished for all rows before the next are begun
static_assert(kFloatChunk % kBandTiles == 0);

// N tiles of one band, T of them in registers at a time. x: input k of row r at x[k * x_rows + r].
template <class W, int R, int T, int N>
[[gnu::noinline]] void float_tiles_product(const MatmulArgs& a, const float* x, int x_rows, int row,
                                           int tile) {
  // Sets of T tiles take turns before what they share a stream with has left the nearest cache.
  constexpr int kSets = N / T;
  const int turn = kSets == 1 ? a.n_in : 32 * W::kInputs;
  // The first rows that meet a band stream it from memory; those behind them, which find it in the
  // cache, ask for the next chunk.
  const auto [first, step] = lines_of(a, tile, W::kLineBytes);
  const size_t ahead = row > 0      ? kFloatChunk * a.tile_bytes
                       : kSets == 1 ? kPrefetchBytes
                                    : turn / W::kInputs * step;
  F acc[kSets][T][R];
  for (int set = 0; set < kSets; ++set)
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) acc[set][t][r] = zero();

  const std::byte* lines = first;
  for (int begin = 0; begin < a.n_in; begin += turn, lines += turn / W::kInputs * step) {
    const int end = begin + turn < a.n_in ? begin + turn : a.n_in;
    for (int set = 0; set < kSets; ++set) {
      const std::byte* w = lines + set * T * W::kLineBytes;
      F sums[T][R];
      for (int t = 0; t < T; ++t)
        for (int r = 0; r < R; ++r) sums[t][r] = acc[set][t][r];
      int k = begin;
      for (; k + W::kInputs <= end; k += W::kInputs, w += step) {
        for (int line = 0; line < T * W::kLineBytes; line += 64)
          __builtin_prefetch(w + ahead + line);
        F weights[T][W::kInputs];
        for (int t = 0; t < T; ++t) W::load_line(w + t * W::kLineBytes, weights[t]);
        for (int s = 0; s < W::kInputs; ++s) {
          for (int r = 0; r < R; ++r) {
            const F in = set1(x[static_cast<int64_t>(k + s) * x_rows + r]);
            for (int t = 0; t < T; ++t) sums[t][r] = fma(in, weights[t][s], sums[t][r]);
          }
        }
      }
      if (k < end) {  // an odd last input of bf16
        for (int t = 0; t < T; ++t) {
          F weights[W::kInputs];
          W::load_line(w + t * W::kLineBytes, weights);
          for (int r = 0; r < R; ++r)
            sums[t][r] = fma(set1(x[static_cast<int64_t>(k) * x_rows + r]), weights[0], sums[t][r]);
        }
      }
      for (int t = 0; t < T; ++t)
        for (int r = 0; r < R; ++r) acc[set][t][r] = sums[t][r];
    }
  }
  for (int t = 0; t < N; ++t)
    for (int r = 0; r < R; ++r) store_outputs(a, row + r, tile + t, acc[t / T][t % T][r]);
}

template <class W>
void matmul_float(const MatmulArgs& a, int first_tile, int last_tile) {
  for (int chunk = first_tile; chunk < last_tile;) {
    const int next = (chunk / kFloatChunk + 1) * kFloatChunk;
    const int chunk_end = next < last_tile ? next : last_tile;
    for_row_pieces<kFloatRows>(
        a.rows, [&](int base, int in_group, int first, int rows) __attribute__((always_inline)) {
          const float* x =
              static_cast<const float*>(a.x) + static_cast<int64_t>(base) * a.n_in + first;
          with_rows<kFloatRows>(
              rows, [&]<int R>() __attribute__((always_inline)) {
                constexpr int kTiles = float_tiles(R);
                static_assert(kBandTiles % kTiles == 0);
                for (int tile = chunk; tile < chunk_end;) {
                  const bool band = tile % kBandTiles == 0 && tile + kBandTiles <= chunk_end;
                  if (band)
                    float_tiles_product<W, R, kTiles, kBandTiles>(a, x, in_group, base + first,
                                                                  tile);
                  else
                    float_tiles_product<W, R, 1, 1>(a, x, in_group, base + first, tile);
                  tile += band ? kBandTiles : 1;
                }
              });
        });
    chunk = chunk_end;
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
// add: the same block of T tiles, `tile_bytes` apart, for R rows.
struct BlockQ8_0 {
  static constexpr int kBytes = 2 * 16 + 512;
  template <int R, int T>
  LANES_INLINE static void add(const std::byte* block, size_t tile_bytes, const int8_t* q,
                               const float* d, const float*, const int32_t* sum, F (*acc)[R]) {
    ByteSum s[T][R][kParts];
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r)
        for (int part = 0; part < kParts; ++part) s[t][r][part] = byte_zero();
#pragma GCC unroll 1  // the sums fill the registers
    for (int v = 0; v < 8; ++v) {
      ByteWeights w[T][kParts];
      for (int t = 0; t < T; ++t)
        for (int part = 0; part < kParts; ++part)
          w[t][part] = byte_weights(load_bytes(block + t * tile_bytes + 32 + 64 * v, part));
      for (int r = 0; r < R; ++r)
        for (int t = 0; t < T; ++t)
          for (int part = 0; part < kParts; ++part)
            add_bytes(s[t][r][part], w[t][part], word(q + 32 * r + 4 * v));
    }
    for (int t = 0; t < T; ++t) {
      const F scale = load_f16(reinterpret_cast<const uint16_t*>(block + t * tile_bytes));
      for (int r = 0; r < R; ++r)
        acc[t][r] = fma(to_float(total(s[t][r], sum[r])), scale * set1(d[r]), acc[t][r]);
    }
  }
};

// weights: of the first tile.
template <int R, int T>
LANES_INLINE void sum_nibbles(const std::byte* weights, size_t tile_bytes, const int8_t* q,
                              NibbleSum (&s)[T][R][kParts]) {
  const auto load = [&](auto nibbles, int v, Bytes(&w)[T][kParts]) __attribute__((always_inline)) {
    for (int t = 0; t < T; ++t)
      for (int part = 0; part < kParts; ++part)
        w[t][part] = nibbles(load_bytes(weights + t * tile_bytes + 64 * v, part));
  };
  Bytes first[T][kParts];
  load(low_nibbles, 0, first);
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t)
      for (int part = 0; part < kParts; ++part)
        s[t][r][part] = nibble_products(first[t][part], word(q + 32 * r));
  const auto add = [&](auto nibbles, int v, int input) __attribute__((always_inline)) {
    Bytes w[T][kParts];
    load(nibbles, v, w);
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t)
        for (int part = 0; part < kParts; ++part)
          add_nibbles(s[t][r][part], w[t][part], word(q + 32 * r + input));
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
  template <int R, int T>
  LANES_INLINE static void add(const std::byte* block, size_t tile_bytes, const int8_t* q,
                               const float* d, const float*, const int32_t* sum, F (*acc)[R]) {
    NibbleSum s[T][R][kParts];
    sum_nibbles<R, T>(block + 32, tile_bytes, q, s);
    for (int t = 0; t < T; ++t) {
      const F scale = load_f16(reinterpret_cast<const uint16_t*>(block + t * tile_bytes));
      for (int r = 0; r < R; ++r)  // weights are n - 8
        acc[t][r] =
            fma(to_float(total(s[t][r]) - iset1(8 * sum[r])), scale * set1(d[r]), acc[t][r]);
    }
  }
};

struct BlockQ4_1 {
  static constexpr int kBytes = 4 * 16 + 256;
  template <int R, int T>
  LANES_INLINE static void add(const std::byte* block, size_t tile_bytes, const int8_t* q,
                               const float* d, const float* scaled_sum, const int32_t*,
                               F (*acc)[R]) {
    NibbleSum s[T][R][kParts];
    sum_nibbles<R, T>(block + 64, tile_bytes, q, s);
    for (int t = 0; t < T; ++t) {
      const auto* const scales = reinterpret_cast<const uint16_t*>(block + t * tile_bytes);
      const F scale = load_f16(scales);
      const F minimum = load_f16(scales + 16);
      for (int r = 0; r < R; ++r) {
        acc[t][r] = fma(to_float(total(s[t][r])), scale * set1(d[r]), acc[t][r]);
        acc[t][r] = fma(minimum, set1(scaled_sum[r]), acc[t][r]);
      }
    }
  }
};

template <class Block, int R, int T>
[[gnu::noinline]] void quant_tiles_product(const MatmulArgs& a, int base, int in_group, int first,
                                           int tile) {
  // The first rows that meet a tile stream it from memory; those behind them, which find it in the
  // cache, ask for the next ones in the meantime.
  const size_t ahead = base + first == 0 ? kPrefetchBytes : T * a.tile_bytes;
  const int n_blocks = a.n_in / kQuantBlock;
  const int64_t before = static_cast<int64_t>(base) * (a.n_in / kQuantBlock) + first;
  const int8_t* q = static_cast<const int8_t*>(a.x) + before * kQuantBlock;
  const float* d = a.x_scale + before;
  const float* scaled_sum = a.x_scaled_sum + before;
  const int32_t* sum = a.x_sum + before;
  const std::byte* block = a.w + static_cast<size_t>(tile) * a.tile_bytes;
  F acc[T][R];
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) acc[t][r] = zero();
  for (int b = 0; b < n_blocks; ++b) {
    for (int t = 0; t < T; ++t)
      for (int line = 0; line < Block::kBytes; line += 64)
        __builtin_prefetch(block + t * a.tile_bytes + ahead + line);
    Block::template add<R, T>(block, a.tile_bytes, q, d, scaled_sum, sum, acc);
    block += Block::kBytes;
    q += in_group * kQuantBlock;
    d += in_group;
    scaled_sum += in_group;
    sum += in_group;
  }
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) store_outputs(a, base + first + r, tile + t, acc[t][r]);
}

// T tiles from `tile` on for all rows, at most Rows at a time.
template <class Block, int Rows, int T>
LANES_INLINE void quant_tiles(const MatmulArgs& a, int tile) {
  for_row_pieces<Rows>(
      a.rows, [&](int base, int in_group, int first, int rows) __attribute__((always_inline)) {
        with_rows<Rows>(
            rows, [&]<int R>() __attribute__((always_inline)) {
              quant_tiles_product<Block, R, T>(a, base, in_group, first, tile);
            });
      });
}

template <class Block>
void matmul_quant(const MatmulArgs& a, int first_tile, int last_tile) {
  int tile = first_tile;
  if constexpr (kPairRows > 0) {
    if (a.rows > kQuantRows)
      for (; tile + 2 <= last_tile; tile += 2) quant_tiles<Block, kPairRows, 2>(a, tile);
  }
  for (; tile < last_tile; ++tile) quant_tiles<Block, kQuantRows, 1>(a, tile);
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
