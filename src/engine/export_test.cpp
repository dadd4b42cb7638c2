// Exported folders compute what the GGUF file computes with its weights rounded to bf16.
#include "engine/export.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "io/checkpoint.h"
#include "io/test_files.h"
#include "models/golden_support.h"

namespace paceline {
namespace {

std::vector<float> logits_at(const fs::path& model, WeightsType weights,
                             const std::vector<TokenId>& ids) {
  const auto checkpoint = Checkpoint::open(model);
  if (!checkpoint) ADD_FAILURE() << checkpoint.error().message;
  if (!checkpoint) return {};
  const auto loaded = load_model(*checkpoint, {.weights = weights, .threads = 1});
  if (!loaded) ADD_FAILURE() << loaded.error().message;
  if (!loaded) return {};
  return logits_of(**loaded, ids, 16, CacheType::F32);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class ExportGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(ExportGolden, TheFolderComputesWhatTheFileDoes) {
  const fs::path source = goldens() / GetParam();
  const Golden golden = read_golden(source);
  const TemporaryFolder folder;
  for (const int64_t shard_bytes : {int64_t{20'000}, int64_t{5'000'000'000}}) {
    const fs::path out = folder.path() / std::to_string(shard_bytes);
    const auto summary =
        export_model(source / "model.gguf", {.out = out, .shard_bytes = shard_bytes, .threads = 2});
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->files.size(), names_in(out).size());
    EXPECT_EQ(fs::exists(out / "model.safetensors"), shard_bytes > 20'000);
    EXPECT_EQ(fs::exists(out / "model.safetensors.index.json"), shard_bytes == 20'000);

    const auto file = logits_at(source / "model.gguf", WeightsType::BF16, golden.ids);
    const auto exported = logits_at(out, WeightsType::Native, golden.ids);
    ASSERT_EQ(file.size(), exported.size());
    // A folder of Gemma scales its embeddings by a root rounded to bf16, 1 / 512 off at most.
    const bool gemma = std::string_view(GetParam()).starts_with("gemma");
    // Divisors of the rotation (gguf_f32) are float32, the scaling gives them in double precision.
    const bool divided = GetParam() == std::string_view("llama/gguf_f32");
    EXPECT_EQ(same_bytes(file, exported), !gemma && !divided);
    double worst = 0;
    double largest = 0;
    for (size_t i = 0; i < file.size(); ++i) {
      worst = std::max(worst, std::abs(double{file[i]} - exported[i]));
      largest = std::max(largest, std::abs(double{file[i]}));
    }
    EXPECT_LE(worst, gemma ? largest / 50 : divided ? largest / 1e5 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ExportGolden,
                         ::testing::Values("llama/gguf_f32", "llama/gguf_quant", "mistral/gguf",
                                           "qwen2/gguf", "qwen3/gguf", "gemma3/gguf"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

TEST(Export, FoldersBecomeBf16AndKeepTheirTexts) {
  const fs::path source = goldens() / "llama/f16";
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  const auto summary = export_model(source, {.out = out});
  ASSERT_TRUE(summary) << summary.error().message;
  const Golden golden = read_golden(source);
  EXPECT_TRUE(same_bytes(logits_at(source, WeightsType::BF16, golden.ids),
                         logits_at(out, WeightsType::Native, golden.ids)));
  const auto config = nlohmann::json::parse(read_whole(out / "config.json"));
  auto wanted = nlohmann::json::parse(read_whole(source / "config.json"));
  for (const char* key : {"dtype", "torch_dtype"})
    if (wanted.contains(key)) wanted[key] = "bfloat16";
  if (!wanted.contains("dtype")) wanted["torch_dtype"] = "bfloat16";
  EXPECT_EQ(config, wanted);
}

// The file keeps divisors of the rotation; the folder says the scaling that they come from.
TEST(Export, DivisorsOfTheRotationBecomeLlama3Scaling) {
  const TemporaryFolder folder;
  const std::string bytes = read_whole(goldens() / "llama/gguf_f32/model.gguf");
  const fs::path file = folder.write("model.gguf", bytes);
  const auto summary = export_model(file, {.out = folder.path() / "out"});
  ASSERT_TRUE(summary) << summary.error().message;
  const auto wanted = nlohmann::json::parse(read_whole(goldens() / "llama/llama3_old/config.json"));
  const auto config = nlohmann::json::parse(read_whole(folder.path() / "out/config.json"));
  EXPECT_EQ(config["rope_scaling"], wanted["rope_scaling"]);

  // Other divisors have no words.
  const auto checkpoint = Checkpoint::open(file);
  const Tensor* divisors = checkpoint->find("rope_freqs.weight");
  ASSERT_NE(divisors, nullptr);
  std::vector<float> values(static_cast<size_t>(divisors->elements()));
  dequantize(*divisors, 0, values);
  const std::string old(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  values[1] *= 1.5f;
  const std::string other(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  std::string changed = bytes;
  changed.replace(changed.find(old), old.size(), other);
  expect_refused(export_model(folder.write("other.gguf", changed), {.out = folder.path() / "no"}),
                 ErrorCode::Unsupported, {"rope_freqs.weight"});
  EXPECT_FALSE(fs::exists(folder.path() / "no"));
}

TEST(Export, NothingStaysWhereItDoesNotFinish) {
  const TemporaryFolder folder;
  const fs::path source = goldens() / "llama/gguf_quant/model.gguf";
  int calls = 0;
  expect_refused(export_model(source, {.out = folder.path() / "out",
                                       .shard_bytes = 20'000,
                                       .stop = [&] { return ++calls == 9; }}),
                 ErrorCode::Interrupted, {"nothing was written"});
  EXPECT_EQ(calls, 9);
  EXPECT_TRUE(names_in(folder.path()).empty());
  expect_refused(export_model(source, {.out = folder.path() / "a/b"}), ErrorCode::BadUsage,
                 {"--out", "does not exist"});
  folder.write("there/file", "x");
  expect_refused(export_model(source, {.out = folder.path() / "there/"}), ErrorCode::BadUsage,
                 {"--out", "not empty"});
  expect_refused(export_model(source, {.out = folder.path() / "there/file"}), ErrorCode::BadUsage,
                 {"--out", "a file of that name"});
  fs::create_directory(folder.path() / "empty");
  EXPECT_TRUE(export_model(source, {.out = folder.path() / "empty/"}));
  EXPECT_TRUE(fs::exists(folder.path() / "empty/model.safetensors"));
}

}  // namespace
}  // namespace paceline
