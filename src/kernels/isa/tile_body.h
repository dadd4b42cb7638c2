// Products through the tile registers of AMX; docs/numerics.md, rule 4 and the amx numerics.
//
// Weights go into a tile as they are packed: for bf16 a row of B is one 64-byte line of 16 outputs
// by 2 inputs, for int8 one of 16 outputs by 4 inputs.
#pragma once

#include "kernels/isa/matmul_body.h"
#include "kernels/isa/tiles.h"

// The instruction set whose kernels serve wherever tiles do not.
namespace paceline::PACELINE_TILES_OVER {
extern const KernelTable table;
}

namespace paceline::PACELINE_ISA {
namespace {

// Calls f for 0 .. N - 1 as compile-time constants: the number of a tile is part of an instruction.
template <int N, int I = 0, class Function>
LANES_INLINE void for_constants(Function f) {
  if constexpr (I < N) {
    f.template operator()<I>();
    for_constants<N, I + 1>(f);
  }
}

// --- bf16 weights, amx numerics ----------------------------------------------------------------

inline constexpr int kTileBytes = kTileRows * kTileRowBytes;
inline constexpr int kTallRows = 8;  // more rows have high and low parts in tiles of their own

constexpr int chunks_of(int n_in) { return (n_in + kSplitChunk - 1) / kSplitChunk; }

void split_rows(const float* x, int rows, int n_in, int first, int n, uint16_t* out) {
  const int chunks = chunks_of(n_in);
  for (int row = first; row < first + n; ++row) {
    const int base = row / kRowGroup * kRowGroup;
    const int in_group = rows - base < kRowGroup ? rows - base : kRowGroup;
    const float* in = x + static_cast<int64_t>(row) * n_in;
    uint16_t* high = out + (static_cast<int64_t>(base) * chunks * 2 + (row - base)) * kSplitChunk;
    for (int chunk = 0; chunk < chunks; ++chunk, high += 2 * in_group * kSplitChunk) {
      uint16_t* low = high + in_group * kSplitChunk;
      for (int i = 0; i < kSplitChunk; i += kLanes) {
        const int k = chunk * kSplitChunk + i;
        const int left = n_in - k;
        const F value = left >= kLanes ? load(in + k) : left > 0 ? load_tail(in + k, left) : zero();
        store_bf16(high + i, value);
        const F rounded = load_bf16(high + i);
        // What is no finite number leaves nothing: infinity less infinity would be none.
        const M finite = (as_int(rounded) & iset1(0x7fffffff)) < iset1(0x7f800000);
        store_bf16(low + i, select(finite, value - rounded, zero()));
      }
    }
  }
}

// The rows of one group with T tiles of outputs. x: the group's split rows.
//   up to 8 rows   C: T tiles of high and low rows   A: 4             B: 5, 6, 7 in turn
//   up to 16       C: 2 T, high and low apart        A: 4, 5          B: 6, 7 in turn
template <bool Tall, int T>
LANES_INLINE void bf16_tiles_product(Tiles& tiles, const MatmulArgs& a, const uint16_t* x, int row,
                                     int rows, int tile) {
  static_assert(T * (Tall ? 2 : 1) <= 4);
  const auto [first, step] = lines_of(a, tile, kTileRowBytes);
  const std::byte* w = first;
  for_constants<Tall ? 2 * T : T>([&]<int I>() __attribute__((always_inline)) {
    tiles.template clear<I>();
  });
  const auto add_chunk = [&](const std::byte* weights, int64_t tile_step, int64_t line_step)
      __attribute__((always_inline)) {
    tiles.template read<4>(x, kTileRowBytes);
    if constexpr (Tall) tiles.template read<5>(x + rows * kSplitChunk, kTileRowBytes);
    for_constants<T>([&]<int I>() __attribute__((always_inline)) {
      constexpr int kB = Tall ? 6 + I % 2 : 5 + I % 3;
      tiles.template read<kB>(weights + I * tile_step, line_step);
      if constexpr (Tall) {
        tiles.template add_bf16<2 * I, 4, kB>();
        tiles.template add_bf16<2 * I + 1, 5, kB>();
      } else {
        tiles.template add_bf16<I, 4, kB>();
      }
    });
    x += 2 * rows * kSplitChunk;
  };
  const int whole = a.n_in / kSplitChunk;
  for (int chunk = 0; chunk < whole; ++chunk) {
    for (int line = 0; line < kTileRows; ++line)
      for (int t = 0; t < T; ++t)
        __builtin_prefetch(w + kPrefetchBytes + line * step + t * kTileRowBytes);
    add_chunk(w, kTileRowBytes, static_cast<int64_t>(step));
    w += kTileRows * step;
  }
  if (const int left = a.n_in % kSplitChunk; left > 0) {
    // Behind a tile's last inputs stand other weights, or nothing.
    alignas(64) std::byte padded[T][kTileRows][kTileRowBytes] = {};
    for (int line = 0; line < (left + 1) / 2; ++line)
      for (int t = 0; t < T; ++t)
        __builtin_memcpy(padded[t][line], w + line * step + t * kTileRowBytes, kTileRowBytes);
    add_chunk(padded[0][0], kTileBytes, kTileRowBytes);
  }
  alignas(64) float sums[2 * kRowGroup][kLanes];
  for_constants<T>([&]<int I>() __attribute__((always_inline)) {
    if constexpr (Tall) {
      tiles.template write<2 * I>(sums, kTileRowBytes);
      tiles.template write<2 * I + 1>(sums + rows, kTileRowBytes);
    } else {
      tiles.template write<I>(sums, kTileRowBytes);
    }
    for (int r = 0; r < rows; ++r)
      store_outputs(a, row + r, tile + I, load(sums[r]) + load(sums[rows + r]));
  });
}

template <bool Tall>
[[gnu::noinline]] void bf16_group_product(Tiles& tiles, const MatmulArgs& a, const uint16_t* x,
                                          int row, int rows, int first_tile, int last_tile) {
  constexpr int kTogether = Tall ? 2 : 4;
  for (int tile = first_tile; tile < last_tile;) {
    const bool together = tile % kTogether == 0 && tile + kTogether <= last_tile;
    if (together)
      bf16_tiles_product<Tall, kTogether>(tiles, a, x, row, rows, tile);
    else
      bf16_tiles_product<Tall, 1>(tiles, a, x, row, rows, tile);
    tile += together ? kTogether : 1;
  }
}

void matmul_bf16_tiles(const MatmulArgs& a, int first_tile, int last_tile) {
  const int64_t row_values = static_cast<int64_t>(chunks_of(a.n_in)) * 2 * kSplitChunk;
  Tiles tiles;
  int configured = 0;
  // A band is finished for all rows before the next is begun.
  for (int chunk = first_tile, chunk_end; chunk < last_tile; chunk = chunk_end) {
    const int next = (chunk / kBandTiles + 1) * kBandTiles;
    chunk_end = next < last_tile ? next : last_tile;
    for (int base = 0; base < a.rows; base += kRowGroup) {
      const int rows = a.rows - base < kRowGroup ? a.rows - base : kRowGroup;
      const bool tall = rows > kTallRows;
      if (rows != configured) {
        TileConfig config;
        const int in_a_tile = tall ? rows : 2 * rows;
        for (int tile = 0; tile < 5; ++tile) config.set(tile, in_a_tile, kTileRowBytes);
        config.set(5, tall ? rows : kTileRows, kTileRowBytes);
        for (int tile = 6; tile < 8; ++tile) config.set(tile, kTileRows, kTileRowBytes);
        tiles.configure(config);
        configured = rows;
      }
      const auto* x = static_cast<const uint16_t*>(a.x) + base * row_values;
      if (tall)
        bf16_group_product<true>(tiles, a, x, base, rows, chunk, chunk_end);
      else
        bf16_group_product<false>(tiles, a, x, base, rows, chunk, chunk_end);
    }
  }
}

void bf16_tile(int rows, int pairs, const uint16_t* a, const uint16_t* b, float* c) {
  TileConfig config;
  config.set(0, rows, 64);
  config.set(1, rows, 4 * pairs);
  config.set(2, pairs, 64);
  Tiles tiles;
  tiles.configure(config);
  tiles.read<0>(c, kTileRowBytes);
  tiles.read<1>(a, 4 * pairs);
  tiles.read<2>(b, kTileRowBytes);
  tiles.add_bf16<0, 1, 2>();
  tiles.write<0>(c, kTileRowBytes);
}

// --- block-quantised weights, either numerics ----------------------------------------------------

// The weights of a block as a tile takes them: int8 [8][16 outputs][4 inputs]. Nibbles are spread
// into `spread` once for all rows.
LANES_INLINE const std::byte* tile_weights(BlockQ8_0, const std::byte* block, int8_t*) {
  return block + 32;
}
template <int Offset>
LANES_INLINE const std::byte* spread_nibbles(const std::byte* nibbles, int8_t* spread) {
  const auto* from = reinterpret_cast<const uint8_t*>(nibbles);
  for (int i = 0; i < 256; ++i) {
    spread[i] = static_cast<int8_t>((from[i] & 15) - Offset);
    spread[256 + i] = static_cast<int8_t>((from[i] >> 4) - Offset);
  }
  return reinterpret_cast<const std::byte*>(spread);
}
LANES_INLINE const std::byte* tile_weights(BlockQ4_0, const std::byte* block, int8_t* spread) {
  return spread_nibbles<8>(block + 32, spread);
}
LANES_INLINE const std::byte* tile_weights(BlockQ4_1, const std::byte* block, int8_t* spread) {
  return spread_nibbles<0>(block + 64, spread);
}
constexpr bool has_minimum(BlockQ4_1) { return true; }
constexpr bool has_minimum(...) { return false; }

// One group of rows with one tile of outputs. Blocks go in batches, a step of all of them before
// the next step: what was stored just now is not yet where a tile, or a vector, is loaded from.
template <class Block>
[[gnu::noinline]] void quant_group_product(Tiles& tiles, const MatmulArgs& a, int base, int rows,
                                           int tile) {
  constexpr int kBatch = 8;
  const int n_blocks = a.n_in / kQuantBlock;
  const int64_t before = static_cast<int64_t>(base) * (a.n_in / kQuantBlock);
  const int8_t* q = static_cast<const int8_t*>(a.x) + before * kQuantBlock;
  const std::byte* block = a.w + static_cast<size_t>(tile) * a.tile_bytes;
  alignas(64) int8_t spread[kBatch][512];
  alignas(64) int32_t sums[kBatch][kRowGroup][kLanes];
  alignas(64) float scales[kBatch][kLanes];
  alignas(64) float minima[kBatch][kLanes];
  alignas(64) float acc[kRowGroup][kLanes] = {};
  const std::byte* weights[kBatch];

  for (int first = 0; first < n_blocks; first += kBatch) {
    const int n = n_blocks - first < kBatch ? n_blocks - first : kBatch;
    for (int b = 0; b < n; ++b, block += Block::kBytes) {
      for (int line = 0; line < Block::kBytes; line += 64)
        __builtin_prefetch(block + kPrefetchBytes + line);
      weights[b] = tile_weights(Block(), block, spread[b]);
      store(scales[b], load_f16(reinterpret_cast<const uint16_t*>(block)));
      if constexpr (has_minimum(Block()))
        store(minima[b], load_f16(reinterpret_cast<const uint16_t*>(block + 32)));
    }
    const auto sum_block = [&]<int C, int A, int B>(int b) __attribute__((always_inline)) {
      tiles.template clear<C>();
      tiles.template read<A>(q + static_cast<int64_t>(first + b) * rows * kQuantBlock, kQuantBlock);
      tiles.template read<B>(weights[b], kTileRowBytes);
      tiles.template add_int8<C, A, B>();
      tiles.template write<C>(sums[b], kTileRowBytes);
    };
    for (int b = 0; b < n; b += 2) {
      sum_block.template operator()<0, 2, 4>(b);
      if (b + 1 < n) sum_block.template operator()<1, 3, 5>(b + 1);
    }
    const int64_t at = before + static_cast<int64_t>(first) * rows;
    for (int r = 0; r < rows; ++r) {
      F sum = load(acc[r]);
      for (int b = 0; b < n; ++b) {
        const int64_t x = at + static_cast<int64_t>(b) * rows + r;
        sum = fma(to_float(iload(sums[b][r])), load(scales[b]) * set1(a.x_scale[x]), sum);
        if constexpr (has_minimum(Block()))
          sum = fma(load(minima[b]), set1(a.x_scaled_sum[x]), sum);
      }
      store(acc[r], sum);
    }
  }
  for (int r = 0; r < rows; ++r) store_outputs(a, base + r, tile, load(acc[r]));
}

template <class Block, WeightType Type>
void matmul_quant_tiles(const MatmulArgs& a, int first_tile, int last_tile) {
  if (a.rows < kLeastTileRows) {
    PACELINE_TILES_OVER::table.matmul[static_cast<int>(Type)](a, first_tile, last_tile);
    return;
  }
  Tiles tiles;
  int configured = 0;
  for (int tile = first_tile; tile < last_tile; ++tile) {
    for (int base = 0; base < a.rows; base += kRowGroup) {
      const int rows = a.rows - base < kRowGroup ? a.rows - base : kRowGroup;
      if (rows != configured) {
        TileConfig config;
        for (int pair = 0; pair < 2; ++pair) {
          config.set(0 + pair, rows, kTileRowBytes);
          config.set(2 + pair, rows, kQuantBlock);
          config.set(4 + pair, kQuantBlock / 4, kTileRowBytes);
        }
        tiles.configure(config);
        configured = rows;
      }
      quant_group_product<Block>(tiles, a, base, rows, tile);
    }
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
