// The dense families against transformers, and the row rule on all of them: neither chunks nor
// threads nor instruction sets change a bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "kernels/choose.h"
#include "models/golden_support.h"

namespace paceline {
namespace {

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

class DenseGolden : public testing::TestWithParam<std::string> {};

TEST_P(DenseGolden, EqualsTransformers) {
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  const auto model = load_golden(folder, {.weights = WeightsType::F32, .threads = 2});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->info().unused_tensors.size(), GetParam() == "gemma3/multimodal" ? 2 : 0);
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

TEST_P(DenseGolden, ChunksAndThreadsChangeNothing) {
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  for (const auto weights : {WeightsType::Native, WeightsType::BF16, WeightsType::F32}) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 3}) {
      const auto model = load_golden(folder, {.weights = weights, .threads = threads});
      ASSERT_NE(model, nullptr);
      if (expected.empty()) expected = logits_of(*model, golden.ids, 1, CacheType::F16);
      std::vector<int> widths = {1, 5, 16, 64};
      if (threads == 1) {
        widths = {64, 200};
        for (int width = 2; width <= 17; ++width) widths.push_back(width);
      }
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

TEST_P(DenseGolden, EveryInstructionSetGivesTheSameBytesWithEveryCache) {
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  for (const auto cache : {CacheType::F16, CacheType::BF16, CacheType::F32}) {
    std::vector<float> expected;
    for (const KernelTable* table : kernel_tables()) {
      const ForcedIsa forced(table->variant);
      const auto model = load_golden(folder, {.threads = 2, .numerics = Numerics::Portable});
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

INSTANTIATE_TEST_SUITE_P(Checkpoints, DenseGolden,
                         testing::Values("llama/plain", "llama/bias", "llama/tied_small",
                                         "llama/tied_own_head", "llama/linear", "llama/linear_old",
                                         "llama/llama3", "llama/llama3_old", "llama/sharded",
                                         "llama/f16", "llama/gguf_f32", "llama/gguf_quant",
                                         "mistral/window", "mistral/gguf", "qwen2/biases",
                                         "qwen2/window", "qwen2/gguf", "qwen3/plain",
                                         "qwen3/biases", "qwen3/gguf", "gemma3/objects",
                                         "gemma3/flat", "gemma3/multimodal", "gemma3/gguf"),
                         test_name);

class DenseAmx : public testing::TestWithParam<std::string> {};

TEST_P(DenseAmx, KeepsTheRowRule) {
  if (!choose_kernel_table("amx-emulated")) GTEST_SKIP() << "the emulation wants AVX2 here";
  const fs::path folder = goldens() / GetParam();
  const Golden golden = read_golden(folder);
  const auto with = [&](const char* isa, WeightsType weights, int threads) {
    const ForcedIsa forced(isa);
    return load_golden(folder, {.weights = weights, .threads = threads});
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

INSTANTIATE_TEST_SUITE_P(Checkpoints, DenseAmx,
                         testing::Values("llama/plain", "llama/bias", "llama/gguf_quant",
                                         "gemma3/objects"),
                         test_name);

// The negative control: kernels that sum several rows in another order are noticed.
TEST(DenseDecoder, WideKernelsDoNotKeepTheRowRule) {
  const fs::path folder = goldens() / "llama/plain";
  const Golden golden = read_golden(folder);
  const auto model = load_golden(folder, {.threads = 1, .wide = true});
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(same_bytes(logits_of(*model, golden.ids, 5, CacheType::F16),
                          logits_of(*model, golden.ids, 1, CacheType::F16)));
}

}  // namespace
}  // namespace paceline
