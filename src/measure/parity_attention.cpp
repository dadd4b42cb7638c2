// Parity of attention and of what it reads: rows at positions around every border, in blocks, as
// parts of several sequences and as rows of trees, over all three types of cache.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

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

// Trees of kParityRows rows, behind so many committed positions that paths and slots cross borders
// of spans at different rows, with windows that begin inside a path and in front of it.
struct TreeShape {
  AttendShape attend;
  int committed;
};
constexpr std::array kTrees = {
    TreeShape{{64, 9, 3}, 40},    TreeShape{{64, 9, 3}, 63},      TreeShape{{20, 6, 2}, 57},
    TreeShape{{34, 2, 1}, 0},     TreeShape{{128, 8, 1}, 110},    TreeShape{{256, 4, 1}, 121},
    TreeShape{{64, 9, 3, 5}, 60}, TreeShape{{20, 6, 2, 20}, 126}, TreeShape{{128, 4, 1, 64}, 120},
};

constexpr const char* kElementNames[] = {"f16", "bf16", "f32"};

float scale_of(const AttendShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
}

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

// The first n numbers.
std::vector<int> count(int n) {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Pages as one table's kernels filled them.
struct StoredPages {
  std::vector<std::byte> memory;
  std::vector<std::byte*> pages;
};

// Keys and values of n rows.
class ParityCache {
 public:
  ParityCache(const AttendShape& shape, CacheElement element, int n)
      : shape_(shape), element_(element), random_(11) {
    const auto floats = static_cast<size_t>(n) * shape.n_kv_heads * shape.head_dim;
    keys_ = random_.values(floats);
    values_ = random_.values(floats);
  }

  // The rounded keys (values) of one head of these rows, one behind another.
  std::vector<float> keys(int head, std::span<const int> rows) const {
    return rows_of(keys_, head, rows);
  }
  std::vector<float> values(int head, std::span<const int> rows) const {
    return rows_of(values_, head, rows);
  }
  // Row rows[s] at slot s.
  StoredPages store(const KernelTable& table, std::span<const int> rows) const;
  void fill(const StoredPages& stored, AttendArgs& args) const;

 private:
  int stride() const { return (shape_.head_dim + 15) / 16 * 16; }
  size_t key_bytes() const { return element_bytes(element_) * kSpan * shape_.head_dim; }
  size_t head_bytes() const { return key_bytes() + element_bytes(element_) * kSpan * stride(); }
  const float* at(const std::vector<float>& all, int head, int row) const {
    return all.data() + (static_cast<size_t>(row) * shape_.n_kv_heads + head) * shape_.head_dim;
  }
  std::vector<float> rows_of(const std::vector<float>& all, int head,
                             std::span<const int> rows) const;

  AttendShape shape_;
  CacheElement element_;
  ParityRandom random_;
  std::vector<float> keys_, values_;  // (n, n_kv_heads, head_dim)
};

std::vector<float> ParityCache::rows_of(const std::vector<float>& all, int head,
                                        std::span<const int> rows) const {
  std::vector<float> values;
  for (const int row : rows)
    for (int d = 0; d < shape_.head_dim; ++d)
      values.push_back(rounded(element_, at(all, head, row)[d]));
  return values;
}

StoredPages ParityCache::store(const KernelTable& table, std::span<const int> rows) const {
  StoredPages stored;
  const size_t page_bytes = head_bytes() * shape_.n_kv_heads;
  const size_t n = (rows.size() + kSpan - 1) / kSpan;
  stored.memory.assign(n * page_bytes, std::byte{0xff});  // NaNs where nothing is written
  for (size_t i = 0; i < n; ++i)                          // in no order
    stored.pages.push_back(stored.memory.data() + (n - 1 - i) * page_bytes);
  for (int slot = 0; slot < static_cast<int>(rows.size()); ++slot) {
    for (int head = 0; head < shape_.n_kv_heads; ++head) {
      std::byte* to = stored.pages[slot / kSpan] + head * head_bytes();
      table.append_key(at(keys_, head, rows[slot]), shape_.head_dim, element_, to, slot % kSpan);
      table.append_value(at(values_, head, rows[slot]), shape_.head_dim, stride(), element_,
                         to + key_bytes(), slot % kSpan);
    }
  }
  return stored;
}

void ParityCache::fill(const StoredPages& stored, AttendArgs& args) const {
  args.n_heads = shape_.n_heads;
  args.n_kv_heads = shape_.n_kv_heads;
  args.head_dim = shape_.head_dim;
  args.scale = scale_of(shape_);
  args.window = shape_.window;
  args.element = element_;
  args.pages = stored.pages.data();
  args.head_bytes = head_bytes();
  args.value_bytes = key_bytes();
  args.value_stride = stride();
}

RowOperation operation_of(const char* name, const AttendShape& shape, CacheElement element,
                          int slots) {
  const int dim = shape.n_heads * shape.head_dim;
  RowOperation op{name,
                  fmt::format("{} x {}/{}{}", shape.head_dim, shape.n_heads, shape.n_kv_heads,
                              shape.window > 0 ? fmt::format(" window {}", shape.window) : ""),
                  kElementNames[static_cast<int>(element)], dim, dim * sizeof(float)};
  op.cost = 2.0 * dim * slots;
  return op;
}

// Every head of a row whose path these rows are.
std::vector<std::byte> defined(const AttendShape& shape, const ParityCache& cache,
                               std::span<const float> x, std::span<const int> path) {
  std::vector<float> out;
  for (int head = 0; head < shape.n_heads; ++head) {
    const int kv_head = head / (shape.n_heads / shape.n_kv_heads);
    const auto one = reference::attend(
        x.subspan(static_cast<size_t>(head) * shape.head_dim, shape.head_dim),
        cache.keys(kv_head, path), cache.values(kv_head, path), scale_of(shape), shape.window);
    out.insert(out.end(), one.begin(), one.end());
  }
  return bytes_of(std::span<const float>(out));
}

void attend_parts(std::span<const AttendArgs> parts, int slots, const Kernels& kernels) {
  const size_t per_thread = attend_scratch_floats(slots, parts.front().head_dim);
  std::vector<float> scratch(per_thread * kernels.pool->size());
  attend(parts, scratch.data(), per_thread, kernels);
}

// Blocks of an odd number of rows are cut into sequences of up to three rows each, which share the
// cache; the others are one sequence.
RowOperation attend_of(const AttendShape& shape, CacheElement element) {
  const auto cache = std::make_shared<ParityCache>(shape, element, kCached);
  const auto stored = std::make_shared<std::map<const KernelTable*, StoredPages>>();
  RowOperation op = operation_of("attend", shape, element, kCached);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    if (!stored->contains(kernels.table))
      stored->emplace(kernels.table, cache->store(*kernels.table, count(kCached)));
    std::vector<int> positions;
    for (const int row : which) positions.push_back(kPositions[row]);
    const int at_once = x.rows % 2 == 0 ? x.rows : 3;
    std::vector<AttendArgs> parts;
    for (int first = 0; first < x.rows; first += at_once) {
      AttendArgs& part = parts.emplace_back();
      part.q = x.row(first).data();
      part.out = reinterpret_cast<float*>(out) + static_cast<size_t>(first) * x.cols;
      part.rows = std::min(at_once, x.rows - first);
      part.positions = positions.data() + first;
      cache->fill(stored->at(kernels.table), part);
    }
    attend_parts(parts, kCached, kernels);
  };
  op.reference = [=](std::span<const float> x, int which) {
    return defined(shape, *cache, x, count(kPositions[which] + 1));
  };
  return op;
}

// A tree behind some committed positions; in a ParityCache its rows stand behind those.
struct ParityTree {
  int committed;
  std::vector<int> parents, positions;

  ParityTree(int committed_rows, uint64_t seed) : committed(committed_rows) {
    ParityRandom random(seed);
    for (int row = 0; row < kParityRows; ++row) {
      const int parent = random.below(5) < 2 ? random.below(row + 1) - 1 : row - 1;
      parents.push_back(parent);
      positions.push_back(parent < 0 ? committed : positions[parent] + 1);
    }
  }
  // By position, from the first committed one on.
  std::vector<int> path(int row) const {
    std::vector<int> all = count(positions[row] + 1);
    for (; row >= 0; row = parents[row]) all[positions[row]] = committed + row;
    return all;
  }
};

// A row alone is the last one of a chain, which stands in a cache of its own; in blocks, rows stand
// where the tree has them, those of every other branch among them. Blocks that come to the tree's
// end go on in another sequence, at its first row.
RowOperation attend_tree_of(const TreeShape& given, CacheElement element) {
  const AttendShape shape = given.attend;
  const int slots = given.committed + kParityRows;
  const auto cache = std::make_shared<ParityCache>(shape, element, slots);
  const auto stored = std::make_shared<std::map<const KernelTable*, StoredPages>>();
  const auto tree = std::make_shared<ParityTree>(
      given.committed, static_cast<uint64_t>(shape.head_dim + given.committed));
  RowOperation op = operation_of("attend tree", shape, element, slots);
  op.shape += fmt::format(" behind {}", given.committed);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    if (!stored->contains(kernels.table))
      stored->emplace(kernels.table, cache->store(*kernels.table, count(slots)));
    std::vector<AttendArgs> parts;
    StoredPages chain;
    for (int first = 0; first < x.rows;) {
      AttendArgs& part = parts.emplace_back();
      part.q = x.row(first).data();
      part.out = reinterpret_cast<float*>(out) + static_cast<size_t>(first) * x.cols;
      part.rows = std::min(x.rows - first, kParityRows - which[first]);
      part.positions = tree->positions.data() + which[first];
      if (x.rows == 1) {
        chain = cache->store(*kernels.table, tree->path(which[0]));
        cache->fill(chain, part);
      } else {
        part.first_open = tree->committed;
        part.parents = tree->parents.data();
        part.first_row = which[first];
        part.by_slot = kernels.wide;
        cache->fill(stored->at(kernels.table), part);
      }
      first += part.rows;
    }
    attend_parts(parts, slots, kernels);
  };
  op.reference = [=](std::span<const float> x, int which) {
    return defined(shape, *cache, x, tree->path(which));
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
  for (const TreeShape& shape : kTrees)
    for (const CacheElement element : {CacheElement::F16, CacheElement::BF16, CacheElement::F32})
      pieces.push_back(piece_of(attend_tree_of(shape, element)));
}

}  // namespace paceline::measure
