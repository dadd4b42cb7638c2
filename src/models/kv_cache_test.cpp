// Caches against a plain model of them: whatever blocks, rollbacks and forks came before, a cache
// holds what was committed, as far back as its windows ask for.
#include "models/kv_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "kernels/choose.h"

namespace paceline {
namespace {

constexpr int kHeads = 1;
constexpr int kDim = 2;
constexpr int kCapacity = 1000;

// What a row leaves in a layer's cache: every element tells where it belongs and who wrote it.
float element(int layer, int position, int token, int i) {
  return static_cast<float>((layer * 7 + position * 3 + token * 11 + i) % 251) + 0.5f;
}

// The plain model of one sequence: its tokens.
struct Sequence {
  std::unique_ptr<KvCache> cache;
  std::vector<int> tokens;
};

// Whether the cache holds that row in every layer.
bool holds_row(const KvCache& cache, const KvShape& shape, int token, int position) {
  static std::vector<std::byte> bytes;
  bytes.clear();
  cache.append_bytes(position, bytes);
  const auto* found = reinterpret_cast<const float*>(bytes.data());
  for (int layer = 0; layer < shape.n_layers; ++layer)
    for (int head = 0; head < kHeads; ++head)
      for (const int value : {0, 100})
        for (int d = 0; d < kDim; ++d)
          if (*found++ != element(layer, position, token, value + head * kDim + d)) return false;
  return true;
}

// Everything that may still be asked for: rows that are remembered, among them all that the next
// one sees, and in full layers those from the beginning on.
void expect_memory(const Sequence& sequence, const KvShape& shape) {
  const int length = static_cast<int>(sequence.tokens.size());
  RC_ASSERT(sequence.cache->length() == length);
  const int first = sequence.cache->first_remembered();
  RC_ASSERT(first <= std::max(length - shape.window + 1, 0));
  for (int position = first; position < length; ++position)
    if (!holds_row(*sequence.cache, shape, sequence.tokens[position], position))
      RC_FAIL("position " + std::to_string(position) + " is lost");
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    AttendArgs args;
    sequence.cache->fill(layer, args);
    RC_ASSERT(args.window == (shape.layer_slides(layer) ? shape.window : 0));
    for (int position = 0; position < length && args.window == 0; ++position) {
      const auto* keys =
          reinterpret_cast<const float*>(args.pages[position / kSpan] + args.layer_bytes);
      const int slot = position % kSpan;
      if (keys[slot / kKeyTile * kDim * kKeyTile + slot % kKeyTile] !=
          element(layer, position, sequence.tokens[position], 0))
        RC_FAIL("a full layer lost position " + std::to_string(position));
    }
  }
}

// least .. end - 1, over the whole range from the first case on.
int in_range(int least, int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, end));
}

// Reads a block of which the rows of `path` are kept.
void read(Sequence& sequence, const KvShape& shape, const Block& block, std::span<const int> path) {
  const KernelTable& table = *kernel_tables().front();
  sequence.cache->open(block);
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    for (int i = 0; i < block.rows(); ++i) {
      std::vector<float> k(kHeads * kDim);
      std::vector<float> v(kHeads * kDim);
      for (int d = 0; d < kHeads * kDim; ++d) {
        k[d] = element(layer, block.positions()[i], block.tokens()[i], d);
        v[d] = element(layer, block.positions()[i], block.tokens()[i], 100 + d);
      }
      for (int head = 0; head < shape.n_kv_heads; ++head)
        sequence.cache->append(layer, i, head, k.data(), v.data(), table);
    }
  }
  sequence.cache->commit(path);
  for (const int row : path) sequence.tokens.push_back(block.tokens()[row]);
}

// A chain of which the first n_true rows are kept.
void read_chain(Sequence& sequence, const KvShape& shape, Block& block, int rows, int n_true,
                int token) {
  block.reset(sequence.cache->length());
  for (int i = 0; i < rows; ++i) block.add(i < n_true ? token + i : 1000 + i);
  std::vector<int> path(n_true);
  std::iota(path.begin(), path.end(), 0);
  read(sequence, shape, block, path);
}

// A tree of which a path of n_true rows is kept, which stand anywhere. No path is longer than
// `depth`.
void read_tree(Sequence& sequence, const KvShape& shape, Block& block, int rows, int n_true,
               int depth, int token) {
  block.reset(sequence.cache->length());
  std::vector<int> path;
  for (int i = 0; i < rows; ++i) {
    const int missing = n_true - static_cast<int>(path.size());
    if (in_range(0, rows - i) < missing) {
      const int parent = path.empty() ? Block::kNoParent : path.back();
      path.push_back(block.add(token + i, parent));
      continue;
    }
    int parent = in_range(-1, i);
    if (parent >= 0 && block.positions()[parent] + 1 - block.first_pos() >= depth) parent = -1;
    block.add(1000 + i, parent);
  }
  read(sequence, shape, block, path);
}

void walk(const KvShape& shape) {
  std::vector<Sequence> sequences(1);
  sequences[0].cache = std::move(*KvCache::make(shape, kCapacity));
  std::vector<Block> blocks = {Block(9), Block(64), Block(200)};
  const int steps = in_range(20, 80);
  for (int step = 0; step < steps; ++step) {
    const int which = in_range(0, static_cast<int>(sequences.size()));
    if (*rc::gen::weightedElement<bool>({{8, false}, {1, true}})) {
      const Sequence& parent = sequences[which];
      const int length = in_range(0, parent.cache->length() + 1);
      auto fork = parent.cache->fork(kCapacity, length);
      RC_ASSERT(fork.has_value());
      const int shared = (*fork)->length();
      RC_ASSERT(shape.n_sliding() > 0 || shared == length);
      RC_ASSERT(shared == 0 || shared == length || shared == length / kSpan * kSpan);
      Sequence child{std::unique_ptr<KvCache>(static_cast<KvCache*>(fork->release())),
                     {parent.tokens.begin(), parent.tokens.begin() + shared}};
      expect_memory(child, shape);
      if (sequences.size() < 3)
        sequences.push_back(std::move(child));
      else  // the one that was there goes, what it shares stays
        sequences[(which + 1) % 3] = std::move(child);
      continue;
    }
    Sequence& sequence = sequences[which];
    Block& block = blocks[*rc::gen::weightedElement<int>({{3, 0}, {4, 1}, {2, 2}})];
    const int room = std::min(block.capacity(), kCapacity - sequence.cache->length());
    if (room == 0) continue;
    const int rows = in_range(1, room + 1);
    const bool all = *rc::gen::weightedElement<bool>({{1, false}, {2, true}});
    const int n_true = all ? rows : in_range(0, rows);
    if (in_range(0, 2) == 0) {
      read_chain(sequence, shape, block, rows, n_true, step * 31 % 200);
    } else {
      const int slots = std::min(block.capacity(), room + kMostTreeRows);
      read_tree(sequence, shape, block, std::max(in_range(n_true, slots + 1), 1), n_true, room,
                step * 31 % 200);
    }
    expect_memory(sequence, shape);
  }
  for (const Sequence& each : sequences) expect_memory(each, shape);
  int most = 0;
  for (const Sequence& each : sequences) most = std::max(most, each.cache->first_remembered());
  RC_CLASSIFY(most > 0, "a window has moved on");
}

TEST(KvCache, HoldsWhatWasCommittedWhateverCameBefore) {
  EXPECT_TRUE(rc::check([] {
    KvShape shape{.n_layers = 3, .n_kv_heads = kHeads, .head_dim = kDim, .type = CacheType::F32};
    shape.window = *rc::gen::element(1, 2, 8, 63, 64, 65, 66, 130, 300);
    shape.slides = *rc::gen::element(std::vector<bool>{}, std::vector<bool>{true, true, true},
                                     std::vector<bool>{true, false, true},
                                     std::vector<bool>{false, false, true});
    walk(shape);
  }));
}

// A fork right behind a rollback, at the last whole page, is what a prefix cache asks for at the
// end of every generation: it never begins anew.
TEST(KvCache, ForksAtTheEndAreAlwaysPossible) {
  EXPECT_TRUE(rc::check([] {
    KvShape shape{.n_layers = 1, .n_kv_heads = kHeads, .head_dim = kDim, .type = CacheType::F32};
    shape.window = in_range(1, 200);
    shape.slides = {true};
    Sequence sequence{std::move(*KvCache::make(shape, kCapacity)), {}};
    Block block(WindowRing::kUsualBlock);
    for (int step = 0; step < 15; ++step) {
      const int room = std::min(block.capacity(), kCapacity - sequence.cache->length());
      if (room == 0) break;
      const int rows = in_range(1, room + 1);
      read_chain(sequence, shape, block, rows, in_range(0, rows + 1), 5);
      const int length = sequence.cache->length();
      const auto fork = sequence.cache->fork(0, length);
      RC_ASSERT(fork.has_value());
      RC_ASSERT((*fork)->length() == length / kSpan * kSpan);
    }
  }));
}

TEST(KvCache, RefusesWhatCannotFit) {
  const auto cache = KvCache::make(
      {.n_layers = 1000, .n_kv_heads = 1000, .head_dim = 1000, .type = CacheType::F32}, 1 << 20);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::TooLarge);
}

}  // namespace
}  // namespace paceline
