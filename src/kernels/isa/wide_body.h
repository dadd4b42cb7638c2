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

template <class W, int R>
[[gnu::noinline]] void float_split_product(const MatmulArgs& a, int tile) {
  constexpr int kChains = kSplitChains / R;
  const std::byte* w = a.w + static_cast<size_t>(tile) * a.tile_bytes;
  const auto* x = static_cast<const float*>(a.x);
  F acc[kChains][R];
  for (int c = 0; c < kChains; ++c)
    for (int r = 0; r < R; ++r) acc[c][r] = zero();
  const auto add_step = [&](int k, F(&chain)[R]) __attribute__((always_inline)) {
    F weights[W::kStep];
    W::load_step(w, k, weights);
    for (int s = 0; s < W::kStep; ++s)
      for (int r = 0; r < R; ++r)
        chain[r] = fma(set1(x[static_cast<int64_t>(k + s) * R + r]), weights[s], chain[r]);
  };
  int k = 0;
  for (; k + kChains * W::kStep <= a.n_in; k += kChains * W::kStep)
    for (int c = 0; c < kChains; ++c) add_step(k + c * W::kStep, acc[c]);
  for (; k + W::kStep <= a.n_in; k += W::kStep) add_step(k, acc[0]);
  if (k < a.n_in) {
    const F weights = W::load_last(w, k);
    for (int r = 0; r < R; ++r)
      acc[0][r] = fma(set1(x[static_cast<int64_t>(k) * R + r]), weights, acc[0][r]);
  }
  store_folded(a, tile, acc);
}

template <class W>
void matmul_float_wide(const MatmulArgs& a, int first_tile, int last_tile) {
  if (a.rows > kSplitRows) {
    matmul_float<W>(a, first_tile, last_tile);
    return;
  }
  for (int tile = first_tile; tile < last_tile; ++tile)
    with_rows<kSplitRows>(
        a.rows, [&]<int R>()
                    __attribute__((always_inline)) { float_split_product<W, R>(a, tile); });
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
    Block::template add<R>(at, q + static_cast<int64_t>(b) * R * kQuantBlock, a.x_scale + b * R,
                           a.x_scaled_sum + b * R, a.x_sum + b * R, chain);
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
