// Parity of attention and of what it reads: rows at positions around every border, in blocks, as
// parts of several sequences, over all three types of cache.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "base/types.h"
#include "kernels/attention.h"
#include "kernels/reference.h"
#include "measure/parity_rows.h"

namespace paceline::measure {
namespace {

struct AttendShape {
  int head_dim;
  int n_heads;
  int n_kv_heads;
  int window = 0;  // 0: none
};

// One to eight queries a key head; sizes of heads that are no multiple of sixteen.
constexpr std::array kShapes = {
    AttendShape{2, 1, 1},
    AttendShape{20, 6, 2},
    AttendShape{34, 2, 1},
    AttendShape{64, 3, 1},
    AttendShape{64, 9, 3},
    AttendShape{64, 7, 1},
    AttendShape{64, 1, 1},
    AttendShape{72, 5, 1},
    AttendShape{80, 2, 2},
    AttendShape{96, 6, 1},
    AttendShape{128, 2, 1},
    AttendShape{128, 4, 1},
    AttendShape{128, 8, 1},
    AttendShape{256, 4, 1},
    AttendShape{256, 2, 1},
    // Windows that begin inside a tile, inside a span, and on the border of one.
    AttendShape{64, 9, 3, 7},
    AttendShape{20, 6, 2, 65},
    AttendShape{128, 4, 1, 64},
    AttendShape{256, 4, 1, 200},
};

// Where the rows stand: around the borders of tiles of 16 keys and of spans of 64 positions. A
// cache with other borders adds its own here.
constexpr std::array kPositions = {0,   1,   15,  16,  17,  31,  32,  47,  48,  62,  63,
                                   64,  65,  79,  80,  126, 127, 128, 129, 143, 144, 190,
                                   191, 192, 193, 254, 255, 256, 257, 319, 320, 321};
static_assert(kPositions.size() == kParityRows);
constexpr int kCached = 322;

constexpr const char* kElementNames[] = {"f16", "bf16", "f32"};

size_t element_bytes(CacheElement element) { return element == CacheElement::F32 ? 4 : 2; }

float rounded(CacheElement element, float x) {
  if (element == CacheElement::F16) return to_f32(to_f16(x));
  if (element == CacheElement::BF16) return to_f32(to_bf16(x));
  return x;
}

// Writes x as the cache's type, at element `at`.
void put(CacheElement element, float x, std::byte* to, size_t at) {
  if (element == CacheElement::F32) {
    std::memcpy(to + 4 * at, &x, 4);
    return;
  }
  const uint16_t bits = element == CacheElement::F16 ? to_f16(x).bits : to_bf16(x).bits;
  std::memcpy(to + 2 * at, &bits, 2);
}

// Keys and values of kCached positions, plain and as one table's kernels stored them.
class ParityCache {
 public:
  ParityCache(const AttendShape& shape, CacheElement element)
      : shape_(shape), element_(element), random_(11) {
    const auto n = static_cast<size_t>(kCached) * shape.n_kv_heads * shape.head_dim;
    keys_ = random_.values(n);
    values_ = random_.values(n);
  }

  // The rounded keys (values) of one head at positions 0 .. last, one behind another.
  std::vector<float> keys(int head, int last) const { return rows_of(keys_, head, last); }
  std::vector<float> values(int head, int last) const { return rows_of(values_, head, last); }
  void fill(const KernelTable& table, AttendArgs& args);

 private:
  struct Stored {
    std::vector<std::byte> memory;
    std::vector<std::byte*> pages;
  };

  int stride() const { return (shape_.head_dim + 15) / 16 * 16; }
  size_t key_bytes() const { return element_bytes(element_) * kSpan * shape_.head_dim; }
  size_t head_bytes() const { return key_bytes() + element_bytes(element_) * kSpan * stride(); }
  const float* at(const std::vector<float>& all, int head, int position) const {
    return all.data() +
           (static_cast<size_t>(position) * shape_.n_kv_heads + head) * shape_.head_dim;
  }
  std::vector<float> rows_of(const std::vector<float>& all, int head, int last) const;
  Stored store(const KernelTable& table) const;

  AttendShape shape_;
  CacheElement element_;
  ParityRandom random_;
  std::vector<float> keys_, values_;  // (kCached, n_kv_heads, head_dim)
  std::map<const KernelTable*, Stored> stored_;
};

std::vector<float> ParityCache::rows_of(const std::vector<float>& all, int head, int last) const {
  std::vector<float> rows;
  for (int position = 0; position <= last; ++position)
    for (int d = 0; d < shape_.head_dim; ++d)
      rows.push_back(rounded(element_, at(all, head, position)[d]));
  return rows;
}

ParityCache::Stored ParityCache::store(const KernelTable& table) const {
  Stored stored;
  const size_t page_bytes = head_bytes() * shape_.n_kv_heads;
  const size_t n = (kCached + kSpan - 1) / kSpan;
  stored.memory.assign(n * page_bytes, std::byte{0xff});  // NaNs where nothing is written
  for (size_t i = 0; i < n; ++i)                          // in no order
    stored.pages.push_back(stored.memory.data() + (n - 1 - i) * page_bytes);
  for (int position = 0; position < kCached; ++position) {
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      std::byte* to = stored.pages[position / kSpan] + head * head_bytes();
      table.append_key(at(keys_, head, position), shape_.head_dim, element_, to, position % kSpan);
      table.append_value(at(values_, head, position), shape_.head_dim, stride(), element_,
                         to + key_bytes(), position % kSpan);
    }
  }
  return stored;
}

void ParityCache::fill(const KernelTable& table, AttendArgs& args) {
  auto found = stored_.find(&table);
  if (found == stored_.end()) found = stored_.emplace(&table, store(table)).first;
  args.element = element_;
  args.pages = found->second.pages.data();
  args.head_bytes = head_bytes();
  args.value_bytes = key_bytes();
  args.value_stride = stride();
}

// Blocks of an odd number of rows are cut into sequences of up to three rows each, which share the
// cache; the others are one sequence.
RowOperation attend_of(const AttendShape& shape, CacheElement element) {
  const int dim = shape.n_heads * shape.head_dim;
  const auto cache = std::make_shared<ParityCache>(shape, element);
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  RowOperation op{"attend",
                  fmt::format("{} x {}/{}{}", shape.head_dim, shape.n_heads, shape.n_kv_heads,
                              shape.window > 0 ? fmt::format(" window {}", shape.window) : ""),
                  kElementNames[static_cast<int>(element)], dim, dim * sizeof(float)};
  op.cost = 2.0 * dim * kCached;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    std::vector<int> positions;
    for (const int row : which) positions.push_back(kPositions[row]);
    const int at_once = x.rows % 2 == 0 ? x.rows : 3;
    std::vector<AttendArgs> parts;
    for (int first = 0; first < x.rows; first += at_once) {
      AttendArgs& part = parts.emplace_back();
      part.q = x.row(first).data();
      part.out = reinterpret_cast<float*>(out) + static_cast<size_t>(first) * dim;
      part.rows = std::min(at_once, x.rows - first);
      part.positions = positions.data() + first;
      part.n_heads = shape.n_heads;
      part.n_kv_heads = shape.n_kv_heads;
      part.head_dim = shape.head_dim;
      part.scale = scale;
      part.window = shape.window;
      cache->fill(*kernels.table, part);
    }
    const size_t per_thread = attend_scratch_floats(kCached, shape.head_dim);
    std::vector<float> scratch(per_thread * kernels.pool->size());
    attend(parts, scratch.data(), per_thread, kernels);
  };
  op.reference = [=](std::span<const float> x, int which) {
    std::vector<float> out;
    const int last = kPositions[which];
    for (int head = 0; head < shape.n_heads; ++head) {
      const int kv_head = head / (shape.n_heads / shape.n_kv_heads);
      const auto one = reference::attend(
          x.subspan(static_cast<size_t>(head) * shape.head_dim, shape.head_dim),
          cache->keys(kv_head, last), cache->values(kv_head, last), scale, shape.window);
      out.insert(out.end(), one.begin(), one.end());
    }
    return bytes_of(std::span<const float>(out));
  };
  return op;
}

// One position written into an empty page.
RowOperation append_of(int head_dim, CacheElement element, bool key) {
  const int stride = key ? head_dim : (head_dim + 15) / 16 * 16;
  const size_t bytes = element_bytes(element) * kSpan * stride;
  const auto slot_of = [](int which) { return (which * 2 + 1) % kSpan; };
  RowOperation op{key ? "append key" : "append value",
                  fmt::format("{}", head_dim),
                  kElementNames[static_cast<int>(element)],
                  head_dim,
                  bytes,
                  element_bytes(element)};
  op.in_blocks = false;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    std::memset(out, 0, bytes);
    if (key)
      kernels.table->append_key(x.data, head_dim, element, out, slot_of(which[0]));
    else
      kernels.table->append_value(x.data, head_dim, stride, element, out, slot_of(which[0]));
  };
  op.reference = [=](std::span<const float> x, int which) {
    std::vector<std::byte> page(bytes);
    const int slot = slot_of(which);
    for (int d = 0; d < head_dim; ++d) {
      const int tile = slot / kKeyTile * head_dim + d;
      put(element, x[d], page.data(), key ? tile * kKeyTile + slot % kKeyTile : slot * stride + d);
    }
    return page;
  };
  return op;
}

}  // namespace

void add_attention(const ParityOptions&, std::vector<ParityPiece>& pieces) {
  for (const CacheElement element : {CacheElement::F16, CacheElement::BF16, CacheElement::F32}) {
    for (const int head_dim : kParityHeadDims) {
      for (const bool key : {true, false})
        pieces.push_back(piece_of(append_of(head_dim, element, key)));
    }
  }
  for (const AttendShape& shape : kShapes)
    for (const CacheElement element : {CacheElement::F16, CacheElement::BF16, CacheElement::F32})
      pieces.push_back(piece_of(attend_of(shape, element)));
}

}  // namespace paceline::measure
