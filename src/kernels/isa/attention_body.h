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

// Chains side by side must hide the latency of an fma and fit the registers: NQ times the tiles of
// keys, and NQ times the vectors of a value.
#if defined(PACELINE_LANES_AVX512)
inline constexpr int kQueries = 4;
constexpr int score_tiles_at_once(int) { return 4; }
constexpr int value_vectors_at_once(int) { return 4; }
#elif defined(PACELINE_LANES_AVX2)
inline constexpr int kQueries = 4;
constexpr int score_tiles_at_once(int queries) { return queries == 1 ? 4 : queries == 4 ? 1 : 2; }
constexpr int value_vectors_at_once(int queries) { return queries == 1 ? 4 : queries == 2 ? 2 : 1; }
#else
inline constexpr int kQueries = 1;
constexpr int score_tiles_at_once(int) { return 1; }
constexpr int value_vectors_at_once(int) { return 1; }
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

// Asks for a run of memory line by line: decoding reads a cache once a pass, a few KiB at a time,
// which is over before the processor's own prefetcher has seen a pattern in it.
template <int Bytes>
LANES_INLINE void prefetch(const void* p, int step) {
  const char* from = static_cast<const char*>(p) + static_cast<int64_t>(step) * Bytes;
  for (int line = 0; line < Bytes; line += 64) __builtin_prefetch(from + line, 0, 2);
}

// Scores of NQ queries with NT tiles of 16 keys from tile `tile` on, which stand at k. Meanwhile
// as much memory is asked for at each of `ahead`.
template <class E, int NQ, int NT>
LANES_INLINE void score_tiles(const float* const* q, const typename E::Type* k, int head_dim,
                              int tile, float scale, float* const* scores,
                              const typename E::Type* const (&ahead)[2]) {
  F acc[NQ][NT];
  for (int i = 0; i < NQ; ++i)
    for (int t = 0; t < NT; ++t) acc[i][t] = zero();
  for (int d = 0; d < head_dim; ++d) {
    for (const typename E::Type* p : ahead) prefetch<NT * kKeyTile * sizeof(*p)>(p, d);
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

// What a query sees: positions first .. last of its path. Those below in_order stand at the slots
// of their own numbers, position in_order + i at slots[i], which is behind its own number.
struct Seen {
  int first, last;
  int in_order;
  const int* slots;

  LANES_INLINE int first_stray() const { return first > in_order ? first : in_order; }
  LANES_INLINE int slot(int stray) const { return slots[stray - in_order]; }
  LANES_INLINE int last_slot() const { return last < in_order ? last : slot(last); }
};

// The path of a row, up to where it is in order: from there on every slot is the number of its
// position. slots: room for kMostTreeRows, the last of which are used.
LANES_INLINE Seen seen_by(const AttendArgs& a, int row, int* slots) {
  const int position = a.positions[row];
  Seen seen = {a.window > 0 && a.window <= position ? position - a.window + 1 : 0, position,
               position + 1, slots + kMostTreeRows};
  if (a.parents == nullptr) return seen;
  int* next = slots + kMostTreeRows;
  for (int at = a.first_row + row; at >= 0 && a.first_open + at != seen.in_order - 1;
       at = a.parents[at]) {
    *--next = a.first_open + at;
    --seen.in_order;
  }
  seen.slots = next;
  return seen;
}

// Brings the scores of a path from their slots to their positions. Slots ascend along a path and
// lie behind the positions, so none is written over before it was read.
LANES_INLINE void line_up(float* scores, const Seen& seen) {
  for (int pos = seen.first_stray(); pos <= seen.last; ++pos) scores[pos] = scores[seen.slot(pos)];
}

// The control: leaves a path where it stands, with everything beside it masked, as trees are
// attended elsewhere. Lanes and borders of spans go by slots, and sums come out in another order.
LANES_INLINE void mask(float* scores, Seen& seen) {
  if (seen.last < seen.in_order) return;
  const int end = seen.last_slot() + 1;
  int pos = seen.in_order;
  for (int slot = seen.in_order; slot < end; ++slot) {
    const bool own = seen.slot(pos) == slot;
    if (!own || pos < seen.first) scores[slot] = kMinusInfinity;
    if (own) ++pos;
  }
  seen.last = end - 1;
  seen.in_order = end;
}

// Turns a row of scores, by position, into weights exp(score - maximum), +0 outside of what is
// seen, and gives their sum, span by span. `scores` holds whole tiles, from that of the first
// position seen to that of the last.
[[gnu::noinline]] float soften(float* scores, Seen seen) {
  const int first_tile = seen.first / kKeyTile;
  const int tiles = seen.last / kKeyTile + 1;
  float* first = scores + first_tile * kKeyTile;
  float* last = scores + (tiles - 1) * kKeyTile;
  for (int i = 0; i < seen.first % kKeyTile; ++i) first[i] = kMinusInfinity;
  for (int i = seen.last % kKeyTile + 1; i < kKeyTile; ++i) last[i] = kMinusInfinity;
  F most = set1(kMinusInfinity);
  for (int t = first_tile; t < tiles; ++t) most = max(load(scores + t * kKeyTile), most);
  const F top = set1(fold_max(most));
  float total = 0.0f;
  constexpr int kTilesPerSpan = kSpan / kKeyTile;
  for (int t = first_tile; t < tiles;) {
    const int span_end = (t / kTilesPerSpan + 1) * kTilesPerSpan;
    const int end = span_end < tiles ? span_end : tiles;
    F sum = zero();
    for (; t < end; ++t) {
      const F p = exp(load(scores + t * kKeyTile) - top);
      store(scores + t * kKeyTile, p);
      sum = sum + p;
    }
    total = total + fold_sum(sum);
  }
  for (int i = 0; i < seen.first % kKeyTile; ++i) first[i] = 0.0f;
  for (int i = seen.last % kKeyTile + 1; i < kKeyTile; ++i) last[i] = 0.0f;
  return total;
}

// What NQ queries see of one span, which begins at `begin`. Query i sees positions first[i] ..
// end[i] - 1 of it in order, of which those from `common` to `common_end` are seen by all, then
// strays stray[i] .. stray_end[i] - 1, position p of which has its values at
// values[i][p - in_order[i]].
template <class T, int NQ>
struct SpanSeen {
  int begin, common, common_end;
  bool alike;  // every query sees those alone
  int first[NQ], end[NQ], stray[NQ], stray_end[NQ], in_order[NQ];
  const T* values[NQ][kMostTreeRows];
};

// Adds to NV vectors of NQ queries, from channel d on, what the positions of one span give; `page`
// holds the values of those in order. A query that sees nothing of the span gets +0 added, which
// changes no bit: a sum that began at +0 is never -0.
template <class E, int NQ, int NV>
LANES_INLINE void add_span(float* const* weights, const typename E::Type* page, int stride,
                           const SpanSeen<typename E::Type, NQ>& span, float* const* out, int d) {
  F acc[NQ][NV];
  for (int i = 0; i < NQ; ++i)
    for (int v = 0; v < NV; ++v) acc[i][v] = zero();
  const auto add = [&](int i, int pos, const typename E::Type* value)
      __attribute__((always_inline)) {
    const F weight = set1(weights[i][pos]);
    for (int v = 0; v < NV; ++v) acc[i][v] = fma(weight, E::get(value + v * kLanes), acc[i][v]);
  };
  const auto value_at = [&](int pos) __attribute__((always_inline)) {
    return page + static_cast<int64_t>(pos - span.begin) * stride + d;
  };
  for (int i = 0; i < NQ && !span.alike; ++i) {
    const int before = span.common < span.end[i] ? span.common : span.end[i];
    for (int pos = span.first[i]; pos < before; ++pos) add(i, pos, value_at(pos));
  }
  const typename E::Type* value = value_at(span.common);
  const int common_end = span.common_end;
  for (int pos = span.common; pos < common_end; ++pos, value += stride) {
    F vectors[NV];
    for (int v = 0; v < NV; ++v) vectors[v] = E::get(value + v * kLanes);
    for (int i = 0; i < NQ; ++i) {
      const F weight = set1(weights[i][pos]);
      for (int v = 0; v < NV; ++v) acc[i][v] = fma(weight, vectors[v], acc[i][v]);
    }
  }
  for (int i = 0; i < NQ && !span.alike; ++i) {
    for (int pos = span.common_end; pos < span.end[i]; ++pos) add(i, pos, value_at(pos));
    for (int pos = span.stray[i]; pos < span.stray_end[i]; ++pos)
      add(i, pos, span.values[i][pos - span.in_order[i]] + d);
  }
  for (int i = 0; i < NQ; ++i)
    for (int v = 0; v < NV; ++v)
      store(out[i] + d + v * kLanes, load(out[i] + d + v * kLanes) + acc[i][v]);
}

// NQ queries that share key head kv_head. scratch: per query a row of scores, then a row of sums.
template <class E, int NQ>
[[gnu::noinline]] void attend_queries(const AttendArgs& a, int kv_head, const float* const* q,
                                      Seen* seen, float* const* out, float* scratch) {
  using Type = typename E::Type;
  constexpr int kTilesPerPage = kSpan / kKeyTile;
  const size_t head = a.layer_bytes + kv_head * a.head_bytes;
  int least = seen[0].first;
  int last_slot = seen[0].last_slot();
  for (int i = 1; i < NQ; ++i) {
    least = seen[i].first < least ? seen[i].first : least;
    const int slot = seen[i].last_slot();
    last_slot = slot > last_slot ? slot : last_slot;
  }
  const int tiles = last_slot / kKeyTile + 1;
  float* scores[NQ];
  float* sums[NQ];
  for (int i = 0; i < NQ; ++i) {
    scores[i] = scratch + static_cast<int64_t>(i) * (tiles * kKeyTile + a.value_stride);
    sums[i] = scores[i] + tiles * kKeyTile;
    for (int d = 0; d < a.value_stride; d += kLanes) store(sums[i] + d, zero());
  }

  // By slot: each is a lane of its own, so what stands beside a path does no harm.
  constexpr int kTiles = score_tiles_at_once(NQ);
  static_assert(kTilesPerPage % kTiles == 0, "tiles that are read together stand in one page");
  const int tile_elements = a.head_dim * kKeyTile;
  const auto keys = [&](int tile) __attribute__((always_inline)) {
    return reinterpret_cast<const Type*>(a.pages[tile / kTilesPerPage] + head) +
           tile % kTilesPerPage * tile_elements;
  };
  const auto values_at = [&](int tile) __attribute__((always_inline)) {
    return reinterpret_cast<const Type*>(a.pages[tile / kTilesPerPage] + head + a.value_bytes) +
           tile % kTilesPerPage * kKeyTile * a.value_stride;
  };
  const auto score = [&]<int NT>(int tile) __attribute__((always_inline)) {
    const int next = tile + NT + kTilesPerPage - 1 < tiles ? tile + kTilesPerPage : tile;
    score_tiles<E, NQ, NT>(q, keys(tile), a.head_dim, tile, a.scale, scores,
                           {keys(next), values_at(tile)});
  };
  int tile = least / kKeyTile / kTiles * kTiles;
  for (; tile + kTiles <= tiles; tile += kTiles) score.template operator()<kTiles>(tile);
  if (kTiles == 4 && tile + 2 <= tiles) {
    score.template operator()<2>(tile);
    tile += 2;
  }
  for (; tile < tiles; ++tile) score.template operator()<1>(tile);

  // From here on by position.
  float total[NQ];
  int most = 0;
  SpanSeen<Type, NQ> span;
  const auto page = [&](int slot) __attribute__((always_inline)) {
    return reinterpret_cast<const Type*>(a.pages[slot / kSpan] + head + a.value_bytes);
  };
  for (int i = 0; i < NQ; ++i) {
    if (a.by_slot)
      mask(scores[i], seen[i]);
    else
      line_up(scores[i], seen[i]);
    total[i] = soften(scores[i], seen[i]);
    most = seen[i].last > most ? seen[i].last : most;
    span.in_order[i] = seen[i].in_order;
    for (int pos = seen[i].first_stray(); pos <= seen[i].last; ++pos) {
      const int slot = seen[i].slot(pos);
      span.values[i][pos - seen[i].in_order] =
          page(slot) + static_cast<int64_t>(slot % kSpan) * a.value_stride;
    }
  }

  for (int begin = least / kSpan * kSpan; begin <= most; begin += kSpan) {
    const auto within = [begin](int pos) __attribute__((always_inline)) {
      return pos < begin ? begin : pos < begin + kSpan ? pos : begin + kSpan;
    };
    span.begin = begin;
    span.common = begin;
    span.common_end = begin + kSpan;
    for (int i = 0; i < NQ; ++i) {
      const Seen& of = seen[i];
      span.first[i] = within(of.first);
      span.end[i] = within(of.last < of.in_order ? of.last + 1 : of.in_order);
      span.stray[i] = within(of.first_stray());
      span.stray_end[i] = within(of.last + 1);
      span.common = span.first[i] > span.common ? span.first[i] : span.common;
      span.common_end = span.end[i] < span.common_end ? span.end[i] : span.common_end;
    }
    if (span.common_end < span.common)  // no position is seen by all
      span.common = span.common_end = begin + kSpan;
    span.alike = true;
    for (int i = 0; i < NQ; ++i)
      span.alike = span.alike && span.first[i] == span.common && span.end[i] == span.common_end &&
                   span.stray[i] == span.stray_end[i];
    const Type* values = page(begin);
    constexpr int kVectors = value_vectors_at_once(NQ);
    int d = 0;
    for (; d + kVectors * kLanes <= a.value_stride; d += kVectors * kLanes)
      add_span<E, NQ, kVectors>(scores, values, a.value_stride, span, sums, d);
    for (; d < a.value_stride; d += kLanes)
      add_span<E, NQ, 1>(scores, values, a.value_stride, span, sums, d);
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
    Seen seen[kQueries];
    int slots[kQueries][kMostTreeRows];
    for (int i = 0; i < n; ++i) {
      const int within = item + i - kv_head * per_key_head;
      const int row = within / group;
      const int64_t at = static_cast<int64_t>(row) * dim +
                         static_cast<int64_t>(kv_head * group + within % group) * a.head_dim;
      q[i] = a.q + at;
      out[i] = a.out + at;
      seen[i] = seen_by(a, row, slots[i]);
    }
    with_element(
        a.element, [&]<class E>() __attribute__((always_inline)) {
          with_queries<kQueries>(
              n, [&]<int NQ>() __attribute__((always_inline)) {
                attend_queries<E, NQ>(a, kv_head, q, seen, out, scratch);
              });
        });
    item += n;
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA
