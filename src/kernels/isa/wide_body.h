// The control of `--kernels wide`: products whose order of operations depends on the number of
// rows, as it does where kernels are written for speed alone. One to three rows are split along the
// inputs into several chains, which are folded at the end; more rows are tiled as in
// matmul_body.h, one chain an output. Nothing holds it back: it is what exactness is priced
// against.
#pragma once

#include "kernels/isa/lanes.h"
#include "kernels/isa/matmul_body.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

#if defined(PACELINE_LANES_AVX512)
inline constexpr int kSplitRows = 3;
inline constexpr int kSplitChains = 8;  // of one row; several rows share them
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kSplitRows = 3;
inline constexpr int kSplitChains = 6;
#else
inline constexpr int kSplitRows = 1;
inline constexpr int kSplitChains = 4;
#endif
inline constexpr int kSplitBlocks = 2;  // chains of a block-quantised product

template <int Chains, int R>
LANES_INLINE void store_folded(const MatmulArgs& a, int tile, F (&acc)[Chains][R]) {
  for (int r = 0; r < R; ++r) {
    for (int c = 1; c < Chains; ++c) acc[0][r] = acc[0][r] + acc[c][r];
    store_outputs(a, r, tile, acc[0][r]);
  }
}

// T tiles of one band, each in several chains.
template <class W, int R, int T>
[[gnu::noinline]] void float_split_product(const MatmulArgs& a, int tile) {
  constexpr int kChains = kSplitChains / (R * T) > 2 ? kSplitChains / (R * T) : 2;
  const TileLines lines = lines_of(a, tile, W::kLineBytes);
  const auto* x = static_cast<const float*>(a.x);
  const bool asks = tile % kBandTiles == 0;
  F acc[T][kChains][R];
  for (int t = 0; t < T; ++t)
    for (int c = 0; c < kChains; ++c)
      for (int r = 0; r < R; ++r) acc[t][c][r] = zero();
  const std::byte* w = lines.first;
  int k = 0;
  const auto add_line = [&](int inputs, int c) __attribute__((always_inline)) {
    if (T == kBandTiles || asks)
      for (int line = 0; line < kBandTiles * W::kLineBytes; line += 64)
        __builtin_prefetch(w + kPrefetchBytes + line);
    for (int t = 0; t < T; ++t) {
      F weights[W::kInputs];
      W::load_line(w + t * W::kLineBytes, weights);
      for (int s = 0; s < inputs; ++s)
        for (int r = 0; r < R; ++r)
          acc[t][c][r] =
              fma(set1(x[static_cast<int64_t>(k + s) * R + r]), weights[s], acc[t][c][r]);
    }
    w += lines.step;
    k += inputs;
  };
  while (k + kChains * W::kInputs <= a.n_in)
    for (int c = 0; c < kChains; ++c) add_line(W::kInputs, c);
  while (k + W::kInputs <= a.n_in) add_line(W::kInputs, 0);
  if (k < a.n_in) add_line(1, 0);  // an odd last input of bf16
  for (int t = 0; t < T; ++t) store_folded(a, tile + t, acc[t]);
}

template <class W>
void matmul_float_wide(const MatmulArgs& a, int first_tile, int last_tile) {
  if (a.rows > kSplitRows) {
    matmul_float<W>(a, first_tile, last_tile);
    return;
  }
  with_rows<kSplitRows>(
      a.rows, [&]<int R>() __attribute__((always_inline)) {
        constexpr int kTiles = float_tiles(R);
        for (int tile = first_tile; tile < last_tile;) {
          const bool together = tile % kTiles == 0 && tile + kTiles <= last_tile;
          if (together)
            float_split_product<W, R, kTiles>(a, tile);
          else
            float_split_product<W, R, 1>(a, tile);
          tile += together ? kTiles : 1;
        }
      });
}

template <class Block, int R>
[[gnu::noinline]] void quant_split_product(const MatmulArgs& a, int tile) {
  const int n_blocks = a.n_in / kQuantBlock;
  const std::byte* block = a.w + static_cast<size_t>(tile) * a.tile_bytes;
  const auto* q = static_cast<const int8_t*>(a.x);
  F acc[kSplitBlocks][R];
  for (int c = 0; c < kSplitBlocks; ++c)
    for (int r = 0; r < R; ++r) acc[c][r] = zero();
  const auto add_block = [&](int b, F(&chain)[R]) __attribute__((always_inline)) {
    const std::byte* at = block + static_cast<size_t>(b) * Block::kBytes;
    for (int line = 0; line < Block::kBytes; line += 64)
      __builtin_prefetch(at + kPrefetchBytes + line);
    Block::template add<R, 1>(at, 0, q + static_cast<int64_t>(b) * R * kQuantBlock,
                              a.x_scale + b * R, a.x_scaled_sum + b * R, a.x_sum + b * R, &chain);
  };
  int b = 0;
  for (; b + kSplitBlocks <= n_blocks; b += kSplitBlocks)
    for (int c = 0; c < kSplitBlocks; ++c) add_block(b + c, acc[c]);
  for (; b < n_blocks; ++b) add_block(b, acc[0]);
  store_folded(a, tile, acc);
}

template <class Block>
void matmul_quant_wide(const MatmulArgs& a, int first_tile, int last_tile) {
  if (a.rows > kSplitRows) {
    matmul_quant<Block>(a, first_tile, last_tile);
    return;
  }
  for (int tile = first_tile; tile < last_tile; ++tile)
    with_rows<kSplitRows>(
        a.rows, [&]<int R>()
                    __attribute__((always_inline)) { quant_split_product<Block, R>(a, tile); });
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
