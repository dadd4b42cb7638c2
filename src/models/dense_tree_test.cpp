// Blocks that are trees against the chains of their paths: logits, hiddens and what stays in the
// caches, to the last bit.
#include <map>
#include <random>

#include "models/draft_head.h"
#include "models/golden_support.h"
#include "models/kv_cache.h"

namespace paceline {
namespace {

using Bytes = std::vector<std::byte>;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  // 0 .. n - 1.
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

 private:
  std::mt19937 random_;
};

// A tree of up to `rows` rows and `depth` of them on a path: bushes, sticks, several roots. Tokens
// are few, so that branches share them.
void grow(Block& block, int first_pos, int rows, int depth, Dice& dice, int vocab_size) {
  block.reset(first_pos);
  const int bushiness = 2 + dice.below(6);
  while (block.rows() < rows) {
    int parent = block.rows() - 1;
    if (dice.below(bushiness) < 2) parent = dice.below(block.rows() + 1) - 1;
    if (parent >= 0 && block.positions()[parent] + 1 - first_pos >= depth) parent = -1;
    block.add(dice.below(4) * 7 % vocab_size, parent);
  }
}

std::vector<int> path_to(const Block& block, int row) {
  std::vector<int> path;
  for (; row != Block::kNoParent; row = block.parents()[row]) path.insert(path.begin(), row);
  return path;
}

struct Rows {
  std::vector<float> logits, hidden;  // of one row
};

std::vector<Rows> rows_of(const TrunkOut& out) {
  std::vector<Rows> rows;
  for (int i = 0; i < out.hidden.rows; ++i) {
    const std::span<const float> logits = out.logits.row(i), hidden = out.hidden.row(i);
    rows.push_back({{logits.begin(), logits.end()}, {hidden.begin(), hidden.end()}});
  }
  return rows;
}

Bytes bytes_of(const SequenceState& state, int begin) {
  Bytes bytes;
  for (int position = begin; position < state.length(); ++position)
    state.append_bytes(position, bytes);
  return bytes;
}

// As far back as both remember: a tree's slots reach further than a chain's.
bool same_memory(const SequenceState& a, const SequenceState& b) {
  const int begin = std::max(a.first_remembered(), b.first_remembered());
  return a.length() == b.length() && bytes_of(a, begin) == bytes_of(b, begin);
}

// Two readers of one sequence, whose committed text is the same.
struct Pair {
  std::unique_ptr<SequenceState> tree, chain;

  Pair(const Model& model, int capacity, CacheType cache)
      : tree(*model.make_state(capacity, cache)), chain(*model.make_state(capacity, cache)) {}

  void read(const Model& model, Workspace& workspace, int to, Dice& dice) {
    Block block(16);
    while (tree->length() < to) {
      block.reset(tree->length());
      for (int i = 0; i < 16 && tree->length() + i < to; ++i)
        block.add(dice.below(model.info().vocab_size));
      for (SequenceState* state : {tree.get(), chain.get()}) {
        model.forward(block, *state, LogitRows::None, workspace);
        state->commit(block.rows());
      }
    }
  }
};

// What the rows of a path give to a reader that knows no trees; provisional.
std::vector<Rows> as_a_chain(const Model& model, Workspace& workspace, SequenceState& state,
                             const Block& block, std::span<const int> path) {
  Block chain(kMostTreeRows);
  chain.reset(state.length());
  for (const int row : path) chain.add(block.tokens()[row]);
  return rows_of(model.forward(chain, state, LogitRows::All, workspace));
}

bool same(const Rows& a, const Rows& b) {
  return same_bytes(a.logits, b.logits) && same_bytes(a.hidden, b.hidden);
}

// Every path of the tree that was read as `got`.
void expect_paths(const Model& model, Workspace& workspace, SequenceState& chain,
                  const Block& block, const std::vector<Rows>& got) {
  std::vector<bool> continued(block.rows());
  for (const int parent : block.parents())
    if (parent >= 0) continued[parent] = true;
  for (int leaf = 0; leaf < block.rows(); ++leaf) {
    if (continued[leaf]) continue;
    const auto path = path_to(block, leaf);
    const auto wanted = as_a_chain(model, workspace, chain, block, path);
    for (size_t i = 0; i < path.size(); ++i)
      ASSERT_TRUE(same(got[path[i]], wanted[i]))
          << "row " << path[i] << " of " << block.rows() << " behind " << block.first_pos();
    chain.commit(0);
  }
}

// Keeps a path of the tree on one side, the chain of it on the other.
void commit(const Model& model, Workspace& workspace, Pair& pair, const Block& block,
            std::span<const int> path) {
  pair.tree->commit(path);
  if (!path.empty()) as_a_chain(model, workspace, *pair.chain, block, path);
  pair.chain->commit(static_cast<int>(path.size()));
  ASSERT_EQ(pair.tree->length(), pair.chain->length());
}

struct TreeCase {
  const char* checkpoint;
  WeightsType weights = WeightsType::Native;
};

class DenseTrees : public testing::TestWithParam<TreeCase> {};

// Trees of 1 to 32 rows around the borders of spans, over every type of cache, on one thread and on
// two, with every kind of path kept: none, a prefix, rows that do not stand in front.
TEST_P(DenseTrees, ARowGivesWhatItGivesAsTheEndOfItsPath) {
  Dice dice(5);
  std::map<int, int> depths;
  for (const int threads : {1, 2}) {
    const auto model = load_golden(goldens() / GetParam().checkpoint,
                                   {.weights = GetParam().weights, .threads = threads});
    ASSERT_NE(model, nullptr);
    auto workspace = *model->make_workspace(kMostTreeRows, kMostTreeRows);
    for (const CacheType cache : {CacheType::F16, CacheType::BF16, CacheType::F32}) {
      for (const int begin : {0, 3, 62, 63, 64, 66, 110, 126, 127, 130}) {
        Pair pair(*model, begin + 80, cache);
        pair.read(*model, *workspace, begin, dice);
        Block block(kMostTreeRows);
        for (int step = 0; step < 4; ++step) {
          const int rows = step == 0 ? kMostTreeRows : 1 + dice.below(kMostTreeRows);
          grow(block, pair.tree->length(), rows, 1 + dice.below(16), dice,
               model->info().vocab_size);
          const auto got = rows_of(model->forward(block, *pair.tree, LogitRows::All, *workspace));
          expect_paths(*model, *workspace, *pair.chain, block, got);
          ++depths[block.depth()];
          const int end = dice.below(4) == 0 ? -1 : dice.below(block.rows());
          commit(*model, *workspace, pair, block, path_to(block, end));
          if (HasFatalFailure()) return;
          ASSERT_TRUE(same_memory(*pair.tree, *pair.chain)) << "behind " << block.first_pos();
        }
      }
    }
  }
  EXPECT_GT(depths.size(), 12u);
}

// Sequences that share a pass, each with a tree or a chain of its own, with and without logits.
TEST_P(DenseTrees, NeighboursWithOtherTreesChangeNothing) {
  const auto model =
      load_golden(goldens() / GetParam().checkpoint, {.weights = GetParam().weights, .threads = 2});
  ASSERT_NE(model, nullptr);
  auto workspace = *model->make_workspace(4 * kMostTreeRows, 4 * kMostTreeRows);
  Dice dice(6);
  std::vector<Pair> pairs;
  std::vector<Block> blocks(4, Block(kMostTreeRows));
  for (int i = 0; i < 4; ++i) {
    pairs.emplace_back(*model, 200, CacheType::F16);
    pairs[i].read(*model, *workspace, 20 + 21 * i, dice);
  }
  for (int step = 0; step < 12; ++step) {
    std::vector<PassPart> parts;
    for (int i = 0; i < 4; ++i) {
      grow(blocks[i], pairs[i].tree->length(), 1 + dice.below(kMostTreeRows), 6, dice,
           model->info().vocab_size);
      parts.push_back({&blocks[i], pairs[i].tree.get(),
                       (step + i) % 3 == 0 ? LogitRows::Last : LogitRows::All});
    }
    model->forward(parts, *workspace);
    std::vector<std::vector<Rows>> got(4);
    for (int i = 0; i < 4; ++i) {
      TrunkOut out = parts[i].out;
      if (parts[i].logit_rows == LogitRows::Last) {
        ASSERT_EQ(out.logits.rows, 1);
        out.hidden = out.hidden.middle(out.hidden.rows - 1, 1);
      }
      got[i] = rows_of(out);
    }
    for (int i = 0; i < 4; ++i) {
      if (parts[i].logit_rows == LogitRows::All) {
        expect_paths(*model, *workspace, *pairs[i].chain, blocks[i], got[i]);
      } else {
        const auto path = path_to(blocks[i], blocks[i].rows() - 1);
        const auto wanted = as_a_chain(*model, *workspace, *pairs[i].chain, blocks[i], path);
        ASSERT_TRUE(same(got[i].back(), wanted.back()));
        pairs[i].chain->commit(0);
      }
      commit(*model, *workspace, pairs[i], blocks[i],
             path_to(blocks[i], dice.below(blocks[i].rows())));
      ASSERT_TRUE(same_memory(*pairs[i].tree, *pairs[i].chain));
      if (HasFatalFailure()) return;
    }
  }
}

// The widest tree fits wherever its longest path does, at the very end of the capacity as well.
TEST_P(DenseTrees, FitAtTheEndOfTheCapacity) {
  const auto model = load_golden(goldens() / GetParam().checkpoint, {});
  ASSERT_NE(model, nullptr);
  auto workspace = *model->make_workspace(kMostTreeRows, kMostTreeRows);
  Dice dice(7);
  for (const int capacity : {1, 64, 96, 97, 128, 200, model->info().context_length}) {
    Pair pair(*model, capacity, CacheType::F16);
    pair.read(*model, *workspace, std::max(capacity - 5, 0), dice);
    Block block(kMostTreeRows);
    while (pair.tree->length() < capacity) {
      grow(block, pair.tree->length(), kMostTreeRows, capacity - pair.tree->length(), dice,
           model->info().vocab_size);
      const auto got = rows_of(model->forward(block, *pair.tree, LogitRows::All, *workspace));
      expect_paths(*model, *workspace, *pair.chain, block, got);
      if (HasFatalFailure()) return;
      const auto path = path_to(block, dice.below(block.rows()));
      commit(*model, *workspace, pair, block, std::span(path).first(1));
    }
    EXPECT_TRUE(same_memory(*pair.tree, *pair.chain)) << capacity;
  }
}

// What was shared before a tree stays what it was, and a fork behind one has its committed rows.
TEST_P(DenseTrees, ForksShareWhatWasCommitted) {
  const auto model = load_golden(goldens() / GetParam().checkpoint, {});
  ASSERT_NE(model, nullptr);
  auto workspace = *model->make_workspace(kMostTreeRows, kMostTreeRows);
  Dice dice(8);
  Pair pair(*model, 220, CacheType::F16);
  pair.read(*model, *workspace, 66, dice);
  const auto before = *pair.tree->fork(220, 66);
  const Bytes shared = bytes_of(*before, before->first_remembered());
  Block block(kMostTreeRows);
  while (pair.tree->length() < 130) {
    grow(block, pair.tree->length(), kMostTreeRows, 12, dice, model->info().vocab_size);
    model->forward(block, *pair.tree, LogitRows::None, *workspace);
    commit(*model, *workspace, pair, block, path_to(block, dice.below(block.rows())));
  }
  EXPECT_EQ(bytes_of(*before, before->first_remembered()), shared);
  const auto after = *pair.tree->fork(220, pair.tree->length());
  const auto wanted = *pair.chain->fork(220, pair.chain->length());
  const bool slides = model->info().n_sliding > 0;
  EXPECT_EQ(after->length(), slides ? pair.tree->length() / kSpan * kSpan : pair.tree->length());
  EXPECT_TRUE(same_memory(*after, *wanted));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DenseTrees,
                         testing::Values(TreeCase{"llama/plain", WeightsType::F32},
                                         TreeCase{"llama/gguf_quant"}, TreeCase{"mistral/window"},
                                         TreeCase{"gemma3/objects"}),
                         [](const auto& param) {
                           std::string name = param.param.checkpoint;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

// The negative control: with everything but a path masked, sums go by slots, and rows that do not
// stand where a chain has them come out different. Products of four rows and more keep the rule
// under the wide control as well, so rows in order show that nothing else is at fault.
TEST(DenseTree, SumsInTheOrderOfSlotsAreNoticed) {
  const auto model = load_golden(goldens() / "llama/plain", {.weights = WeightsType::F32});
  ASSERT_NE(model, nullptr);
  auto workspace = *model->make_workspace(kMostTreeRows, kMostTreeRows);
  Dice dice(9);
  Pair pair(*model, 120, CacheType::F16);
  pair.read(*model, *workspace, 60, dice);
  Block block(kMostTreeRows);
  block.reset(60);
  for (const int parent : {-1, 0, 0, 2, 3, 1, 5, 6, 7}) block.add(3, parent);
  const auto exact = rows_of(model->forward(block, *pair.tree, LogitRows::All, *workspace));
  workspace->wide_kernels = true;
  const auto masked = rows_of(model->forward(block, *pair.tree, LogitRows::All, *workspace));
  for (const int in_order : {0, 1}) EXPECT_TRUE(same(exact[in_order], masked[in_order]));
  int different = 0;
  for (int row = 2; row < block.rows(); ++row)
    if (!same(exact[row], masked[row])) ++different;
  EXPECT_GE(different, 5);
}

}  // namespace
}  // namespace paceline
