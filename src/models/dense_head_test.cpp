// Draft heads of dense decoders against PyTorch, and what must not matter to their rows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "kernels/argmax.h"
#include "models/golden_support.h"
#include "models/head_support.h"

namespace paceline {
namespace {

using Floats = std::vector<float>;

struct HeadGolden {
  std::string trunk;
  std::vector<TokenId> ids;
  std::map<std::string, Floats> rows;
};

constexpr int kPairs = 32;
constexpr int kRecycled = 3;

HeadGolden read_head_golden(const fs::path& folder) {
  std::ifstream file(folder / "ids.json");
  const auto json = nlohmann::json::parse(file);
  HeadGolden golden{json["trunk"], json["ids"], {}};
  const auto mapped = MappedFile::open(folder / "rows.safetensors");
  const auto contents = read_safetensors(mapped->bytes(), "rows.safetensors");
  for (const Tensor& tensor : contents->tensors) {
    Floats& values = golden.rows[tensor.name];
    values.resize(tensor.elements());
    dequantize(tensor, 0, values);
  }
  return golden;
}

// What a head gives for the golden's pairs and the recycled depths behind them.
struct HeadRun {
  Floats next, logits;  // a row behind another
  std::vector<int> best;
};

void keep(const HeadOut& out, HeadRun& run) {
  const auto last = out.next.row(out.next.rows - 1);
  run.next.insert(run.next.end(), last.begin(), last.end());
  const auto scores = out.logits.row(0);
  run.logits.insert(run.logits.end(), scores.begin(), scores.end());
  run.best.push_back(argmax(scores));
}

HeadRun run_head(const DraftHead& head, const Floats& hidden, std::span<const TokenId> ids) {
  const int dim = head.info().dim;
  auto state = head.make_state(kPairs + kRecycled, CacheType::F32);
  auto workspace = head.make_workspace(kPairs);
  HeadRun run;
  for (int p = 0; p < kPairs; ++p) {
    keep(head.forward({.module = 0,
                       .hidden = {hidden.data() + static_cast<int64_t>(p) * dim, 1, dim},
                       .tokens = ids.subspan(p + 1, 1),
                       .n_next = 1,
                       .n_logits = 1},
                      **state, **workspace),
         run);
    (*state)->commit(0, 1);
  }
  for (int depth = 0; depth < kRecycled; ++depth) {
    const Floats own(run.next.end() - dim, run.next.end());
    keep(head.forward({.module = 0,
                       .hidden = {own.data(), 1, dim},
                       .tokens = ids.subspan(kPairs + 1 + depth, 1),
                       .n_next = 1,
                       .n_logits = 1},
                      **state, **workspace),
         run);
  }
  return run;
}

float distance(std::span<const float> a, std::span<const float> b) {
  float most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

std::vector<int> best_of(const Floats& logits, int n_rows) {
  std::vector<int> best(n_rows);
  const size_t n = logits.size() / n_rows;
  for (int row = 0; row < n_rows; ++row) best[row] = argmax(std::span(logits).subspan(row * n, n));
  return best;
}

class HeadGoldens : public testing::TestWithParam<const char*> {
 protected:
  HeadGoldens()
      : folder_(goldens() / "head" / GetParam()),
        golden_(read_head_golden(folder_)),
        trunk_(load_golden(goldens() / golden_.trunk, {.weights = WeightsType::F32})) {
    auto tensors = read_head(folder_ / "head.safetensors");
    check(tensors.has_value(), "the golden's head reads");
    tensors_ = *std::move(tensors);
  }
  const Floats& rows(Tap tap, const char* what) const {
    return golden_.rows.at(std::string(to_string(tap)) + "." + what);
  }

  fs::path folder_;
  HeadGolden golden_;
  std::unique_ptr<Model> trunk_;
  HeadTensors tensors_;
};

TEST_P(HeadGoldens, HiddensLogitsAndThreeRecycledDepthsAreThoseOfPyTorch) {
  for (const Tap tap : {Tap::After, Tap::Before}) {
    tensors_.config.tap = tap;
    tensors_.config.tap_type = TapType::F32;
    const auto head = made_head(*trunk_, tensors_);
    const HeadRun run = run_head(*head, rows(tap, "hidden"), golden_.ids);
    EXPECT_LT(distance(run.next, rows(tap, "f32.next")), 2e-5f) << to_string(tap);
    EXPECT_LT(distance(run.logits, rows(tap, "f32.logits")), 2e-5f) << to_string(tap);
    EXPECT_EQ(run.best, best_of(rows(tap, "f32.logits"), kPairs + kRecycled)) << to_string(tap);
  }
}

// A state of our own may round to the other neighbour in bf16, so recycled rows are looser.
TEST_P(HeadGoldens, HiddensAreRoundedToTheTapsTypeOnTheWayIn) {
  for (const Tap tap : {Tap::After, Tap::Before}) {
    tensors_.config.tap = tap;
    const auto head = made_head(*trunk_, tensors_);
    const HeadRun run = run_head(*head, rows(tap, "hidden"), golden_.ids);
    const Floats& wanted = rows(tap, "bf16.logits");
    const size_t true_rows = wanted.size() / (kPairs + kRecycled) * kPairs;
    const auto ours = std::span(run.logits), theirs = std::span(wanted);
    EXPECT_LT(distance(ours.first(true_rows), theirs.first(true_rows)), 2e-5f) << to_string(tap);
    EXPECT_LT(distance(ours, theirs), 2e-2f) << to_string(tap);
    EXPECT_EQ(run.best, best_of(wanted, kPairs + kRecycled)) << to_string(tap);
    EXPECT_GT(distance(theirs, rows(tap, "f32.logits")), 1e-4f) << "rounding shows";
  }
}

// Negative controls: two faults that leave every shape as it is.
TEST_P(HeadGoldens, SwappedMergeHalvesAndTheWrongTapAreNoticed) {
  const std::vector<int> right = best_of(rows(Tap::After, "bf16.logits"), kPairs + kRecycled);
  HeadTensors swapped = tensors_;
  HeadTensor& fc = swapped.tensors.at("mtp.fc.weight");
  const auto dim = fc.shape[0];
  for (int64_t row = 0; row < dim; ++row)
    std::swap_ranges(fc.values.begin() + row * 2 * dim, fc.values.begin() + row * 2 * dim + dim,
                     fc.values.begin() + row * 2 * dim + dim);
  const auto with_swap = made_head(*trunk_, swapped);
  EXPECT_NE(run_head(*with_swap, rows(Tap::After, "hidden"), golden_.ids).best, right);

  const auto head = made_head(*trunk_, tensors_);
  EXPECT_EQ(run_head(*head, rows(Tap::After, "hidden"), golden_.ids).best, right);
  EXPECT_NE(run_head(*head, rows(Tap::Before, "hidden"), golden_.ids).best, right);
}

TEST_P(HeadGoldens, TheTrunksHiddensOnBothSidesOfItsNormAreThoseOfPyTorch) {
  auto state = trunk_->make_state(kPairs, CacheType::F32);
  auto workspace = trunk_->make_workspace(kPairs, 1);
  Block block(kPairs);
  block.reset(0);
  for (int i = 0; i < kPairs; ++i) block.add(golden_.ids[i]);
  const TrunkOut out = trunk_->forward(block, **state, LogitRows::Last, **workspace);
  for (const Tap tap : {Tap::After, Tap::Before}) {
    const auto hidden = out.at(tap);
    const std::span ours(hidden.data, static_cast<size_t>(hidden.rows) * hidden.cols);
    EXPECT_LT(distance(ours, rows(tap, "hidden")), 2e-5f) << to_string(tap);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, HeadGoldens, testing::Values("llama", "qwen3"),
                         [](const auto& family) { return std::string(family.param); });

// --- rows ----------------------------------------------------------------------------------------

// Rows of a text read in pieces of these sizes, outputs of some pieces' last rows; what is written
// down are the caches' bytes and the outputs of the last row.
struct PiecewiseRun {
  std::vector<std::byte> cache;
  Floats last;
};

PiecewiseRun run_in_pieces(const DraftHead& head, const Floats& hidden,
                           std::span<const TokenId> ids, std::mt19937& random, int most,
                           bool all_outputs) {
  const int dim = head.info().dim;
  const auto n = static_cast<int>(ids.size());
  auto state = head.make_state(n, CacheType::F16);
  auto workspace = head.make_workspace(64);
  PiecewiseRun run;
  for (int at = 0; at < n;) {
    const int rows = std::min(n - at, 1 + static_cast<int>(random() % most));
    const bool last = at + rows == n;
    const int n_next = all_outputs ? rows : (last ? 1 : static_cast<int>(random() % (rows + 1)));
    const HeadOut out =
        head.forward({.module = 0,
                      .hidden = {hidden.data() + static_cast<int64_t>(at) * dim, rows, dim},
                      .tokens = ids.subspan(at, rows),
                      .n_next = n_next,
                      .n_logits = last ? 1 : 0},
                     **state, **workspace);
    if (last) {
      const auto next = out.next.row(out.next.rows - 1);
      const auto scores = out.logits.row(0);
      run.last.assign(next.begin(), next.end());
      run.last.insert(run.last.end(), scores.begin(), scores.end());
    }
    // Read provisionally, in part taken back and read again, or committed at once.
    const int kept = random() % 3 == 0 ? static_cast<int>(random() % (rows + 1)) : rows;
    (*state)->commit(0, last ? rows : kept);
    at += last ? rows : kept;
  }
  for (int p = 0; p < n; ++p) (*state)->cache(0).append_bytes(p, run.cache);
  return run;
}

TEST(DenseHead, ARowDoesNotDependOnHowManyAreReadAtATime) {
  for (const char* name : {"llama/gguf_quant", "llama/f16", "llama/llama3", "qwen3/gguf"}) {
    const auto trunk = load_golden(goldens() / name, {.threads = 2});
    const auto head = made_head(*trunk, random_head(*trunk, {}, 5));
    const int dim = head->info().dim, vocab_size = trunk->info().vocab_size;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    constexpr int kRows = 150;
    Floats hidden(static_cast<size_t>(kRows) * dim);
    for (float& x : hidden) x = normal(random);
    std::vector<TokenId> ids(kRows);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % vocab_size);
    const PiecewiseRun alone = run_in_pieces(*head, hidden, ids, random, 1, true);
    for (int run = 0; run < 12; ++run) {
      const int most = 1 + static_cast<int>(random() % 64);
      const PiecewiseRun got = run_in_pieces(*head, hidden, ids, random, most, run % 3 == 0);
      EXPECT_EQ(got.cache, alone.cache) << name << ", pieces of up to " << most;
      EXPECT_TRUE(same_bytes(got.last, alone.last)) << name << ", pieces of up to " << most;
    }
  }
}

// What one row of a module gives.
Floats given(const HeadOut& out, int row) {
  const std::span<const float> next = out.next.row(row), scores = out.logits.row(row);
  Floats all(next.begin(), next.end());
  all.insert(all.end(), scores.begin(), scores.end());
  return all;
}

// Trees of provisional rows that grow by pieces, behind committed rows and behind rows of the text
// that are provisional as well, against the chain of every path; then all of it is void.
TEST(DenseHead, ARowOfATreeGivesWhatItGivesAsTheEndOfItsPath) {
  for (const char* name : {"llama/gguf_quant", "llama/f16", "qwen3/gguf"}) {
    const auto trunk = load_golden(goldens() / name, {.threads = 2});
    const auto head = made_head(*trunk, random_head(*trunk, {}, 5));
    const int dim = head->info().dim, vocab_size = trunk->info().vocab_size;
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    constexpr int kRows = 200, kText = 140, kCapacity = 150;
    Floats hidden(static_cast<size_t>(kRows) * dim);
    for (float& x : hidden) x = normal(random);
    std::vector<TokenId> ids(kRows);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % vocab_size);
    auto workspace = head->make_workspace(64);
    auto tree = head->make_state(kCapacity, CacheType::F16);
    auto chain = head->make_state(kCapacity, CacheType::F16);
    const auto read = [&](HeadState& state, int from, int n, std::span<const int> parents) {
      return head->forward({.module = 0,
                            .hidden = {hidden.data() + static_cast<int64_t>(from) * dim, n, dim},
                            .tokens = std::span(ids).subspan(from, n),
                            .parents = parents,
                            .n_next = n,
                            .n_logits = n},
                           state, **workspace);
    };
    for (int at = 0; at + 8 < kText;) {
      // Rows at .. at + n_text - 1 are text; those of the tree have the inputs behind kText.
      const int n_text = static_cast<int>(random() % 8);
      if (n_text > 0) read(**tree, at, n_text, {});
      std::vector<int> parents(n_text);  // of all provisional rows
      std::iota(parents.begin(), parents.end(), -1);
      for (int from = kText; from < kText + 31;) {
        const int n = std::min(kText + 31 - from, 1 + static_cast<int>(random() % 6));
        const int before = n_text + from - kText;
        for (int i = 0; i < n; ++i)
          parents.push_back(random() % 3 == 0 ? static_cast<int>(random() % (before + i + 1)) - 1
                                              : before + i - 1);
        const HeadOut out = read(**tree, from, n, std::span(parents).last(n));
        std::vector<Floats> got(n);
        for (int i = 0; i < n; ++i) got[i] = given(out, i);
        for (int i = 0; i < n; ++i) {
          std::vector<int> path;
          for (int row = before + i; row >= 0; row = parents[row]) path.insert(path.begin(), row);
          Floats last;
          for (const int row : path)
            last = given(read(**chain, row < n_text ? at + row : kText + row - n_text, 1, {}), 0);
          (*chain)->rollback(0);
          ASSERT_TRUE(same_bytes(got[i], last)) << name << ", row " << before + i << " at " << at;
        }
        from += n;
      }
      (*tree)->commit(0, n_text);
      if (n_text > 0) read(**chain, at, n_text, {});
      (*chain)->commit(0, n_text);
      at += n_text;
      ASSERT_EQ((*tree)->length(0), at);
    }
    std::vector<std::byte> bytes[2];
    for (int p = 0; p < (*tree)->length(0); ++p) {
      (*tree)->cache(0).append_bytes(p, bytes[0]);
      (*chain)->cache(0).append_bytes(p, bytes[1]);
    }
    EXPECT_EQ(bytes[0], bytes[1]) << name;
  }
}

// Case 32: whatever stands in the workspace between two rows, a NaN everywhere among them.
TEST(DenseHead, NothingThatIsLeftInTheWorkspaceIsRead) {
  const auto trunk = load_golden(goldens() / "llama/gguf_quant", {});
  const auto head = made_head(*trunk, random_head(*trunk, {}, 5));
  const int dim = head->info().dim;
  const auto run = [&](bool poisoned) {
    auto workspace = head->make_workspace(16);
    auto state = head->make_state(20, CacheType::F16);
    Floats hidden(static_cast<size_t>(dim), 0.25f), all;
    for (TokenId token = 1; token <= 12; ++token) {
      if (poisoned) {
        auto other = head->make_state(16, CacheType::F16);
        const Floats nans(static_cast<size_t>(16) * dim, std::nanf(""));
        const std::vector<TokenId> tokens(16, 7);
        const HeadOut out = head->forward({.module = 0,
                                           .hidden = {nans.data(), 16, dim},
                                           .tokens = tokens,
                                           .n_next = 16,
                                           .n_logits = 1},
                                          **other, **workspace);
        EXPECT_TRUE(std::isnan(out.next.row(0)[0]) && std::isnan(out.logits.row(0)[0]));
      }
      const HeadOut out = head->forward({.module = 0,
                                         .hidden = {hidden.data(), 1, dim},
                                         .tokens = {&token, 1},
                                         .n_next = 1,
                                         .n_logits = 1},
                                        **state, **workspace);
      std::ranges::copy(out.next.row(0), hidden.begin());
      const auto scores = out.logits.row(0);
      all.insert(all.end(), scores.begin(), scores.end());
    }
    return all;
  };
  const Floats clean = run(false);
  EXPECT_TRUE(std::ranges::all_of(clean, [](float x) { return std::isfinite(x); }));
  EXPECT_TRUE(same_bytes(run(true), clean));
}

TEST(DenseHead, AShortlistScoresWhatTheWholeVocabularyScoresThere) {
  for (const char* name : {"llama/gguf_quant", "llama/f16", "llama/llama3", "qwen3/gguf"}) {
    const auto trunk = load_golden(goldens() / name, {});
    const int vocab_size = trunk->info().vocab_size;
    HeadConfig shortlist;
    for (TokenId id = 3; id < vocab_size; id += 1 + id % 3) {
      shortlist.draft_vocabulary.push_back(id);
    }
    const auto whole = made_head(*trunk, random_head(*trunk, {}, 9));
    const auto few = made_head(*trunk, random_head(*trunk, shortlist, 9));
    EXPECT_EQ(few->info().draft_vocabulary, std::ssize(shortlist.draft_vocabulary));
    Floats hidden(whole->info().dim, 0.5f);
    const TokenId token = 1;
    const auto logits = [&](const DraftHead& head) {
      auto state = head.make_state(4, CacheType::F32);
      auto workspace = head.make_workspace(1);
      const HeadOut out = head.forward({.module = 0,
                                        .hidden = {hidden.data(), 1, head.info().dim},
                                        .tokens = {&token, 1},
                                        .n_next = 1,
                                        .n_logits = 1},
                                       **state, **workspace);
      const auto scores = out.logits.row(0);
      return Floats(scores.begin(), scores.end());
    };
    const Floats all = logits(*whole), some = logits(*few);
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(some[i], all[few->full_id(static_cast<int>(i))]) << name << ", entry " << i;
    }
  }
}

TEST(DenseHead, IsPackedInEightBitsOverAQuantisedTrunkAndInItsTypeOverAnother) {
  const std::pair<const char*, const char*> cases[] = {{"llama/gguf_quant", "q8_0"},
                                                       {"llama/f16", "f16"},
                                                       {"llama/llama3", "bf16"},
                                                       {"llama/plain", "f32"}};
  for (const auto& [name, type] : cases) {
    const auto trunk = load_golden(goldens() / name, {});
    EXPECT_EQ(made_head(*trunk, random_head(*trunk, {}, 1))->info().layer_type, type) << name;
  }
}

}  // namespace
}  // namespace paceline
