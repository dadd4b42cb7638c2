// Attention over a cache; docs/numerics.md, rule 3.
//
// Lanes are positions for scores and head dimensions for values. A query's operations depend on its
// own position alone; queries that stand side by side (NQ of them) share the loads of keys and
// values and nothing else.
#pragma once

#include "kernels/isa/lanes.h"
#include "kernels/isa/math_body.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {
namespace {

#if defined(PACELINE_LANES_AVX512)
inline constexpr int kQueries = 4;
constexpr int score_tiles_at_once(int queries) { return queries == 1 ? 4 : 2; }
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kQueries = 4;
constexpr int score_tiles_at_once(int queries) { return queries == 1 ? 4 : queries == 4 ? 1 : 2; }
#else
inline constexpr int kQueries = 1;
constexpr int score_tiles_at_once(int) { return 1; }
#endif

struct ElementF16 {
  using Type = uint16_t;
  LANES_INLINE static F get(const Type* p) { return load_f16(p); }
  LANES_INLINE static void put(Type* p, F a) { store_f16(p, a); }
};
struct ElementBF16 {
  using Type = uint16_t;
  LANES_INLINE static F get(const Type* p) { return load_bf16(p); }
  LANES_INLINE static void put(Type* p, F a) { store_bf16(p, a); }
};
struct ElementF32 {
  using Type = float;
  LANES_INLINE static F get(const Type* p) { return load(p); }
  LANES_INLINE static void put(Type* p, F a) { store(p, a); }
};

static_assert(kQueries <= kMaxQueries);

template <class Function>
LANES_INLINE void with_element(CacheElement element, Function f) {
  switch (element) {
    case CacheElement::F16:
      f.template operator()<ElementF16>();
      return;
    case CacheElement::BF16:
      f.template operator()<ElementBF16>();
      return;
    case CacheElement::F32:
      f.template operator()<ElementF32>();
      return;
  }
}

void append_key(const float* k, int head_dim, CacheElement element, std::byte* page_keys,
                int slot) {
  with_element(
      element, [&]<class E>() __attribute__((always_inline)) {
        using Type = typename E::Type;
        Type* lane = reinterpret_cast<Type*>(page_keys) +
                     static_cast<int64_t>(slot / kKeyTile) * head_dim * kKeyTile + slot % kKeyTile;
        for (int d = 0; d < head_dim; d += kLanes) {
          const int n = head_dim - d < kLanes ? head_dim - d : kLanes;
          Type rounded[kLanes];
          E::put(rounded, n == kLanes ? load(k + d) : load_tail(k + d, n));
          for (int i = 0; i < n; ++i) lane[static_cast<int64_t>(d + i) * kKeyTile] = rounded[i];
        }
      });
}

void append_value(const float* v, int head_dim, int value_stride, CacheElement element,
                  std::byte* page_values, int slot) {
  with_element(
      element, [&]<class E>() __attribute__((always_inline)) {
        using Type = typename E::Type;
        Type* row =
            reinterpret_cast<Type*>(page_values) + static_cast<int64_t>(slot) * value_stride;
        for (int d = 0; d < head_dim; d += kLanes) {
          const int n = head_dim - d < kLanes ? head_dim - d : kLanes;
          E::put(row + d, n == kLanes ? load(v + d) : load_tail(v + d, n));
        }
      });
}

// Scores of NQ queries with NT tiles of 16 keys from tile `tile` on, which stand at k.
template <class E, int NQ, int NT>
LANES_INLINE void score_tiles(const float* const* q, const typename E::Type* k, int head_dim,
                              int tile, float scale, float* const* scores) {
  F acc[NQ][NT];
  for (int i = 0; i < NQ; ++i)
    for (int t = 0; t < NT; ++t) acc[i][t] = zero();
  for (int d = 0; d < head_dim; ++d) {
    F key[NT];
    for (int t = 0; t < NT; ++t)
      key[t] = E::get(k + (static_cast<int64_t>(t) * head_dim + d) * kKeyTile);
    for (int i = 0; i < NQ; ++i) {
      const F query = set1(q[i][d]);
      for (int t = 0; t < NT; ++t) acc[i][t] = fma(query, key[t], acc[i][t]);
    }
  }
  for (int i = 0; i < NQ; ++i)
    for (int t = 0; t < NT; ++t) store(scores[i] + (tile + t) * kKeyTile, acc[i][t] * set1(scale));
}

// Turns a row of scores into weights exp(score - maximum), +0 behind the last position, and writes
// the sum of each span. `scores` holds whole tiles up to and including the last position's.
[[gnu::noinline]] float soften(float* scores, int last_position) {
  const int tiles = last_position / kKeyTile + 1;
  float* last = scores + (tiles - 1) * kKeyTile;
  for (int i = last_position % kKeyTile + 1; i < kKeyTile; ++i) last[i] = kMinusInfinity;
  F most = set1(kMinusInfinity);
  for (int t = 0; t < tiles; ++t) most = max(load(scores + t * kKeyTile), most);
  const F top = set1(fold_max(most));
  float total = 0.0f;
  constexpr int kTilesPerSpan = kSpan / kKeyTile;
  for (int begin = 0; begin < tiles; begin += kTilesPerSpan) {
    const int end = begin + kTilesPerSpan < tiles ? begin + kTilesPerSpan : tiles;
    F sum = zero();
    for (int t = begin; t < end; ++t) {
      const F p = exp(load(scores + t * kKeyTile) - top);
      store(scores + t * kKeyTile, p);
      sum = sum + p;
    }
    total = total + fold_sum(sum);
  }
  for (int i = last_position % kKeyTile + 1; i < kKeyTile; ++i) last[i] = 0.0f;
  return total;
}

// Adds to 16 lanes of NQ queries what the positions of one span give, whose values are a page. All
// queries see positions below `common`; query i sees positions below end[i]. One that sees nothing
// of the span gets +0 added, which changes no bit: a sum that began at +0 is never -0.
template <class E, int NQ>
LANES_INLINE void add_span(float* const* weights, const typename E::Type* values, int stride,
                           int begin, int common, const int* end, float* const* out, int d) {
  F acc[NQ];
  for (int i = 0; i < NQ; ++i) acc[i] = zero();
  const typename E::Type* v = values + d;
  for (int pos = begin; pos < common; ++pos, v += stride) {
    const F value = E::get(v);
    for (int i = 0; i < NQ; ++i) acc[i] = fma(set1(weights[i][pos]), value, acc[i]);
  }
  for (int i = 0; i < NQ; ++i) {
    for (int pos = common; pos < end[i]; ++pos) {
      const F value = E::get(values + static_cast<int64_t>(pos - begin) * stride + d);
      acc[i] = fma(set1(weights[i][pos]), value, acc[i]);
    }
  }
  for (int i = 0; i < NQ; ++i) store(out[i] + d, load(out[i] + d) + acc[i]);
}

// NQ queries that share key head kv_head. scratch: per query a row of scores, then a row of sums.
template <class E, int NQ>
[[gnu::noinline]] void attend_queries(const AttendArgs& a, int kv_head, const float* const* q,
                                      const int* last_position, float* const* out, float* scratch) {
  using Type = typename E::Type;
  constexpr int kTilesPerPage = kSpan / kKeyTile;
  const size_t head = a.layer_bytes + kv_head * a.head_bytes;
  int most = 0;
  for (int i = 0; i < NQ; ++i) most = last_position[i] > most ? last_position[i] : most;
  const int tiles = most / kKeyTile + 1;
  float* scores[NQ];
  float* sums[NQ];
  for (int i = 0; i < NQ; ++i) {
    scores[i] = scratch + static_cast<int64_t>(i) * (tiles * kKeyTile + a.value_stride);
    sums[i] = scores[i] + tiles * kKeyTile;
    for (int d = 0; d < a.value_stride; d += kLanes) store(sums[i] + d, zero());
  }

  constexpr int kTiles = score_tiles_at_once(NQ);
  static_assert(kTilesPerPage % kTiles == 0, "tiles that are read together stand in one page");
  const int tile_elements = a.head_dim * kKeyTile;
  const auto keys = [&](int tile) __attribute__((always_inline)) {
    return reinterpret_cast<const Type*>(a.pages[tile / kTilesPerPage] + head) +
           tile % kTilesPerPage * tile_elements;
  };
  int tile = 0;
  for (; tile + kTiles <= tiles; tile += kTiles)
    score_tiles<E, NQ, kTiles>(q, keys(tile), a.head_dim, tile, a.scale, scores);
  for (; tile < tiles; ++tile)
    score_tiles<E, NQ, 1>(q, keys(tile), a.head_dim, tile, a.scale, scores);

  float total[NQ];
  for (int i = 0; i < NQ; ++i) total[i] = soften(scores[i], last_position[i]);

  for (int begin = 0; begin <= most; begin += kSpan) {
    int end[NQ];
    int common = begin + kSpan;
    for (int i = 0; i < NQ; ++i) {
      end[i] = last_position[i] + 1 < begin + kSpan ? last_position[i] + 1 : begin + kSpan;
      if (end[i] < begin) end[i] = begin;
      common = end[i] < common ? end[i] : common;
    }
    const auto* values =
        reinterpret_cast<const Type*>(a.pages[begin / kSpan] + head + a.value_bytes);
    for (int d = 0; d < a.value_stride; d += kLanes)
      add_span<E, NQ>(scores, values, a.value_stride, begin, common, end, sums, d);
  }
  for (int i = 0; i < NQ; ++i)
    for (int d = 0; d < a.head_dim; ++d) out[i][d] = sums[i][d] / total[i];
}

template <int Max, class Function>
LANES_INLINE void with_queries(int n, Function f) {
  if constexpr (Max > 1) {
    if (n < Max) {
      with_queries<Max - 1>(n, f);
      return;
    }
  }
  f.template operator()<Max>();
}

void attend(const AttendArgs& a, int first, int last, float* scratch) {
  const int group = a.n_heads / a.n_kv_heads;
  const int per_key_head = a.rows * group;
  const int dim = a.n_heads * a.head_dim;
  for (int item = first; item < last;) {
    const int kv_head = item / per_key_head;
    const int stop = (kv_head + 1) * per_key_head < last ? (kv_head + 1) * per_key_head : last;
    const int n = stop - item < kQueries ? stop - item : kQueries;
    const float* q[kQueries];
    float* out[kQueries];
    int last_position[kQueries];
    for (int i = 0; i < n; ++i) {
      const int within = item + i - kv_head * per_key_head;
      const int row = within / group;
      const int64_t at = static_cast<int64_t>(row) * dim +
                         static_cast<int64_t>(kv_head * group + within % group) * a.head_dim;
      q[i] = a.q + at;
      out[i] = a.out + at;
      last_position[i] = a.positions[row];
    }
    with_element(
        a.element, [&]<class E>() __attribute__((always_inline)) {
          with_queries<kQueries>(
              n, [&]<int NQ>() __attribute__((always_inline)) {
                attend_queries<E, NQ>(a, kv_head, q, last_position, out, scratch);
              });
        });
    item += n;
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
