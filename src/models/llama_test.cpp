#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/mapped_file.h"
#include "io/safetensors_reader.h"
#include "kernels/choose.h"
#include "models/kv_cache.h"
#include "models/registry.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = fs::path(PACELINE_SOURCE_DIR) / "tests/golden/llama";

// What transformers computes in float32 for a tiny checkpoint (tools/oracle/make_llama_golden.py).
struct Golden {
  std::vector<TokenId> ids;
  std::vector<int> positions;
  std::vector<float> logits;  // (positions, vocab)
};

Golden read_golden(const fs::path& folder) {
  std::ifstream file(folder / "ids.json");
  const auto json = nlohmann::json::parse(file);
  Golden golden{json["ids"], json["positions"], {}};
  const auto mapped = MappedFile::open(folder / "logits.safetensors");
  const auto contents = read_safetensors(mapped->bytes(), "logits.safetensors");
  const Tensor& logits = contents->tensors.at(0);
  golden.logits.resize(logits.elements());
  dequantize(logits, 0, golden.logits);
  return golden;
}

std::unique_ptr<Model> load(const fs::path& folder, LoadOptions options) {
  const bool gguf = fs::exists(folder / "model.gguf");
  auto checkpoint = Checkpoint::open(gguf ? folder / "model.gguf" : folder);
  if (!checkpoint) {
    ADD_FAILURE() << checkpoint.error().message;
    return nullptr;
  }
  auto model = load_model(*checkpoint, options);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(*model);
}

// Logits of every position, the ids read in blocks of `chunk` rows.
std::vector<float> logits_of(const Model& model, std::span<const TokenId> ids, int chunk,
                             CacheType cache) {
  const int n = static_cast<int>(ids.size());
  auto state = model.make_state(n, cache);
  auto workspace = model.make_workspace(chunk, chunk);
  std::vector<float> all;
  Block block(chunk);
  for (int begin = 0; begin < n; begin += chunk) {
    block.reset(begin);
    for (int i = begin; i < std::min(begin + chunk, n); ++i) block.add(ids[i]);
    const TrunkOut out = model.forward(block, **state, LogitRows::All, **workspace);
    all.insert(all.end(), out.logits.data,
               out.logits.data + static_cast<int64_t>(out.logits.rows) * out.logits.cols);
    (*state)->commit(block.rows());
  }
  return all;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

class LlamaGolden : public testing::TestWithParam<std::string> {};

TEST_P(LlamaGolden, EqualsTransformers) {
  const fs::path folder = kGoldens / GetParam();
  const Golden golden = read_golden(folder);
  const auto model = load(folder, {.weights = WeightsType::F32, .threads = 2});
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->info().unused_tensors.empty());
  const auto logits = logits_of(*model, golden.ids, 16, CacheType::F32);
  const auto vocab = static_cast<size_t>(model->info().vocab_size);
  float largest = 0;
  for (const float x : golden.logits) largest = std::max(largest, std::fabs(x));
  float worst = 0;
  for (size_t i = 0; i < golden.positions.size(); ++i)
    for (size_t j = 0; j < vocab; ++j)
      worst = std::max(
          worst, std::fabs(golden.logits[i * vocab + j] - logits[golden.positions[i] * vocab + j]));
  EXPECT_LE(worst / largest, 1e-4f) << "largest logit " << largest;
  RecordProperty("relative_error", std::to_string(worst / largest));
}

TEST_P(LlamaGolden, ChunksAndThreadsChangeNothing) {
  const fs::path folder = kGoldens / GetParam();
  const Golden golden = read_golden(folder);
  for (const auto weights : {WeightsType::Native, WeightsType::BF16, WeightsType::F32}) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 3}) {
      const auto model = load(folder, {.weights = weights, .threads = threads});
      ASSERT_NE(model, nullptr);
      if (expected.empty()) expected = logits_of(*model, golden.ids, 1, CacheType::F16);
      std::vector<int> widths = {64, 200};
      for (int width = 1; width <= 17; ++width) widths.push_back(width);
      for (const int width : widths)
        EXPECT_TRUE(same_bytes(logits_of(*model, golden.ids, width, CacheType::F16), expected))
            << threads << " threads, blocks of " << width;
    }
  }
}

// Forces an instruction set for the models loaded while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* isa) {
    if (const char* set = std::getenv("PACELINE_ISA")) before_ = set;
    setenv("PACELINE_ISA", isa, 1);
  }
  ~ForcedIsa() {
    if (before_)
      setenv("PACELINE_ISA", before_->c_str(), 1);
    else
      unsetenv("PACELINE_ISA");
  }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST_P(LlamaGolden, EveryInstructionSetGivesTheSameBytesWithEveryCache) {
  const fs::path folder = kGoldens / GetParam();
  const Golden golden = read_golden(folder);
  for (const auto cache : {CacheType::F16, CacheType::BF16, CacheType::F32}) {
    std::vector<float> expected;
    for (const KernelTable* table : kernel_tables()) {
      const ForcedIsa forced(table->variant);
      const auto model = load(folder, {.threads = 2, .numerics = Numerics::Portable});
      ASSERT_NE(model, nullptr);
      // "avx512" is a family too: its best table runs.
      const auto chosen = choose_kernel_table(table->variant, Numerics::Portable);
      ASSERT_EQ(model->info().isa, (*chosen)->variant);
      if (expected.empty()) expected = logits_of(*model, golden.ids, 1, cache);
      for (const int chunk : {1, 9, 64})
        EXPECT_TRUE(same_bytes(logits_of(*model, golden.ids, chunk, cache), expected))
            << table->variant << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, LlamaGolden,
                         testing::Values("plain", "bias", "tied_small", "tied_own_head", "linear",
                                         "linear_old", "llama3", "llama3_old", "sharded", "f16",
                                         "gguf_f32", "gguf_quant"),
                         [](const auto& param) { return param.param; });

class LlamaAmx : public testing::TestWithParam<std::string> {};

TEST_P(LlamaAmx, KeepsTheRowRule) {
  if (!choose_kernel_table("amx-emulated")) GTEST_SKIP() << "the emulation wants AVX2 here";
  const fs::path folder = kGoldens / GetParam();
  const Golden golden = read_golden(folder);
  const auto with = [&](const char* isa, WeightsType weights, int threads) {
    const ForcedIsa forced(isa);
    return load(folder, {.weights = weights, .threads = threads});
  };
  const auto portable = with("scalar", WeightsType::BF16, 2);
  ASSERT_NE(portable, nullptr);
  EXPECT_EQ(portable->info().numerics, "portable");
  const auto near = logits_of(*portable, golden.ids, 16, CacheType::F16);
  std::vector<float> expected;
  for (const int threads : {1, 3}) {
    const auto model = with("amx-emulated", WeightsType::BF16, threads);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->info().numerics, "amx");
    if (expected.empty()) expected = logits_of(*model, golden.ids, 1, CacheType::F16);
    for (const int width : {2, 3, 8, 9, 17, 200})
      EXPECT_TRUE(same_bytes(logits_of(*model, golden.ids, width, CacheType::F16), expected))
          << threads << " threads, blocks of " << width;
  }
  // Another order of operations, and nearly the same numbers.
  EXPECT_FALSE(same_bytes(expected, near));
  float largest = 0;
  float worst = 0;
  for (size_t i = 0; i < near.size(); ++i) {
    largest = std::max(largest, std::fabs(near[i]));
    worst = std::max(worst, std::fabs(near[i] - expected[i]));
  }
  EXPECT_LE(worst / largest, 1e-3f);
  RecordProperty("relative_difference", std::to_string(worst / largest));
  // Weights of other types are multiplied as ever.
  EXPECT_TRUE(same_bytes(
      logits_of(*with("amx-emulated", WeightsType::F32, 2), golden.ids, 16, CacheType::F16),
      logits_of(*with("scalar", WeightsType::F32, 2), golden.ids, 16, CacheType::F16)));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, LlamaAmx, testing::Values("plain", "bias", "gguf_quant"),
                         [](const auto& param) { return param.param; });

// The negative control: kernels that sum several rows in another order are noticed.
TEST(Llama, WideKernelsDoNotKeepTheRowRule) {
  const fs::path folder = kGoldens / "plain";
  const Golden golden = read_golden(folder);
  const auto model = load(folder, {.threads = 1, .wide = true});
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(same_bytes(logits_of(*model, golden.ids, 5, CacheType::F16),
                          logits_of(*model, golden.ids, 1, CacheType::F16)));
}

// Rows that were not committed leave no trace.
TEST(Llama, RollbackIsCommitOfFewerRows) {
  const fs::path folder = kGoldens / "plain";
  const Golden golden = read_golden(folder);
  const auto model = load(folder, {.threads = 1});
  ASSERT_NE(model, nullptr);
  const auto expected = logits_of(*model, golden.ids, 1, CacheType::F16);
  const int vocab = model->info().vocab_size;
  auto state = model->make_state(200, CacheType::F16);
  auto workspace = model->make_workspace(8, 8);
  Block block(8);
  for (int pos = 0, step = 0; pos < 150; ++step) {
    const int accepted = 1 + step % 4;  // right tokens, then wrong ones
    block.reset(pos);
    for (int i = 0; i < 8; ++i)
      block.add(i < accepted ? golden.ids[pos + i] : (golden.ids[pos + i] + 1) % vocab);
    const TrunkOut out = model->forward(block, **state, LogitRows::All, **workspace);
    for (int i = 0; i < accepted; ++i)
      ASSERT_EQ(std::memcmp(out.logits.row(i).data(), &expected[(pos + i) * vocab], vocab * 4), 0)
          << "position " << pos + i;
    (*state)->commit(accepted);
    pos += accepted;
    EXPECT_EQ((*state)->length(), pos);
  }
}

// Sequences that share passes, each with blocks of its own size, joining and leaving as they come;
// rows with and without logits.
TEST(Llama, NeighboursInAPassChangeNothing) {
  const fs::path folder = kGoldens / "plain";
  const Golden golden = read_golden(folder);
  for (const int threads : {1, 3}) {
    const auto model = load(folder, {.threads = threads});
    ASSERT_NE(model, nullptr);
    const int vocab = model->info().vocab_size;
    auto workspace = *model->make_workspace(64, 64);
    struct Member {
      std::vector<TokenId> ids;
      std::vector<float> expected;
      std::unique_ptr<SequenceState> state;
      Block block{16};
      int joins = 0;
    };
    std::vector<Member> members(4);
    for (int i = 0; i < 4; ++i) {
      Member& member = members[i];
      member.ids.assign(golden.ids.begin() + i, golden.ids.begin() + 150 + i);
      if (i == 2) std::reverse(member.ids.begin(), member.ids.end());
      member.expected = logits_of(*model, member.ids, 1, CacheType::F16);
      member.state = *model->make_state(150, CacheType::F16);
      member.joins = 3 * i;
    }
    int compared = 0;
    for (int step = 0; step < 120; ++step) {
      std::vector<PassPart> parts;
      std::vector<Member*> whose;
      for (int i = 0; i < 4; ++i) {
        Member& member = members[i];
        const int at = member.state->length();
        const int rows = std::min(1 + (step * 7 + i * 5) % 13, 150 - at);
        if (step < member.joins || rows == 0 || (step + i) % 5 == 0) continue;
        member.block.reset(at);
        for (int row = 0; row < rows; ++row) member.block.add(member.ids[at + row]);
        constexpr LogitRows kRows[] = {LogitRows::All, LogitRows::Last, LogitRows::None};
        parts.push_back({&member.block, member.state.get(), kRows[(step + i) % 3]});
        whose.push_back(&member);
      }
      if (parts.empty()) continue;
      model->forward(parts, *workspace);
      for (size_t p = 0; p < parts.size(); ++p) {
        Member& member = *whose[p];
        const int rows = member.block.rows();
        const int n = parts[p].n_logits();
        ASSERT_EQ(parts[p].out.logits.rows, n);
        ASSERT_EQ(parts[p].out.hidden.rows, rows);
        for (int i = 0; i < n; ++i) {
          const int64_t row = member.block.first_pos() + rows - n + i;
          ASSERT_EQ(std::memcmp(parts[p].out.logits.row(i).data(), &member.expected[row * vocab],
                                vocab * 4),
                    0)
              << "position " << row << " step " << step;
          ++compared;
        }
        // Some rows are rolled back and come again.
        member.state->commit((step + p) % 4 == 0 ? rows / 2 : rows);
      }
    }
    EXPECT_GT(compared, 200);
  }
}

// A fork reads the shared pages and writes none of them: both go on as if alone.
TEST(Llama, ForksShareWholePagesAndGoTheirOwnWays) {
  const fs::path folder = kGoldens / "plain";
  const Golden golden = read_golden(folder);
  const auto model = load(folder, {.threads = 1});
  ASSERT_NE(model, nullptr);
  const int vocab = model->info().vocab_size;
  auto workspace = *model->make_workspace(16, 16);
  std::vector<TokenId> other(golden.ids.begin(), golden.ids.begin() + 150);
  for (int i = 70; i < 150; ++i) other[i] = (other[i] + 1) % vocab;
  const std::vector<TokenId> first(golden.ids.begin(), golden.ids.begin() + 150);
  Block block(16);
  const auto read = [&](SequenceState& state, const std::vector<TokenId>& ids, int end,
                        const std::vector<float>* expected) {
    while (state.length() < end) {
      const int at = state.length();
      block.reset(at);
      for (int i = at; i < std::min(at + 7, end); ++i) block.add(ids[i]);
      const TrunkOut out = model->forward(block, state, LogitRows::All, *workspace);
      for (int i = 0; expected != nullptr && i < block.rows(); ++i)
        ASSERT_EQ(
            std::memcmp(out.logits.row(i).data(), &(*expected)[int64_t{at + i} * vocab], vocab * 4),
            0)
            << at + i;
      state.commit(block.rows());
    }
  };
  const auto expected_first = logits_of(*model, first, 1, CacheType::F16);
  const auto expected_other = logits_of(*model, other, 1, CacheType::F16);
  auto state = *model->make_state(150, CacheType::F16);
  read(*state, first, 100, &expected_first);

  auto fork = *state->fork(150, 70);  // the tokens differ from 70 on
  EXPECT_EQ(fork->length(), 64);
  EXPECT_EQ(fork->capacity(), 150);
  read(*fork, other, 120, &expected_other);
  read(*state, first, 150, &expected_first);
  state.reset();  // the shared page outlives it
  read(*fork, other, 150, &expected_other);

  const auto kept = *fork->fork(0, 150);
  EXPECT_EQ(kept->length(), 128);
  EXPECT_EQ(kept->capacity(), 128);
  auto again = *kept->fork(150, 128);
  EXPECT_EQ(again->bytes(), fork->bytes());
  read(*again, other, 150, &expected_other);
  EXPECT_EQ((*again->fork(10, 63))->length(), 0);
}

TEST(Llama, ContextBeyondTheModelIsRefused) {
  const auto model = load(kGoldens / "plain", {});
  ASSERT_NE(model, nullptr);
  const auto state = model->make_state(model->info().context_length + 1, CacheType::F16);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::TooLarge);
}

TEST(KvCache, RefusesWhatCannotFit) {
  const auto cache = KvCache::make({1000, 1000, 1000, CacheType::F32}, 1 << 20);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::TooLarge);
}

}  // namespace
}  // namespace paceline
