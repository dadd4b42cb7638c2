// Files of draft heads: what is written is read again, and what does not fit is told all at once.
#include "models/head_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/test_files.h"
#include "io/writer.h"
#include "models/golden_support.h"
#include "models/head_support.h"

namespace paceline {
namespace {

constexpr const char* kTrunk = "llama/llama3";

std::unique_ptr<Model> some_trunk() { return load_golden(goldens() / kTrunk, {}); }

HeadConfig some_config() {
  HeadConfig config;
  config.tap = Tap::Before;
  config.tap_type = TapType::F32;
  config.modules = 2;
  config.depths = 5;
  config.draft_vocabulary = {0, 7, 99, 130};
  config.family = "llama";
  config.trunk_sha256 = std::string(64, 'a');
  config.numerics = "portable";
  config.data_sha256 = std::string(64, 'b');
  config.trainer = "a test";
  return config;
}

std::string refusal(const Model& trunk, const HeadTensors& head) {
  const auto made = trunk.make_head(head);
  return made ? "" : made.error().message;
}

TEST(HeadFile, HoldsValuesRoundedToBf16AndEveryFieldOfTheConfig) {
  const TemporaryFolder folder;
  const auto trunk = some_trunk();
  const HeadTensors head = random_head(*trunk, some_config(), 3);
  ASSERT_TRUE(write_head(folder.path() / "head.safetensors", head));
  const auto read = read_head(folder.path() / "head.safetensors");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(head_metadata(read->config), head_metadata(head.config));
  ASSERT_EQ(read->tensors.size(), head.tensors.size());
  for (const auto& [name, tensor] : head.tensors) {
    const HeadTensor& got = read->tensors.at(name);
    EXPECT_EQ(got.shape, tensor.shape) << name;
    for (size_t i = 0; i < tensor.values.size(); ++i)
      ASSERT_EQ(got.values[i], to_f32(to_bf16(tensor.values[i]))) << name << " " << i;
  }
  const auto config = read_head_config(folder.path() / "head.safetensors");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->draft_vocabulary, head.config.draft_vocabulary);
  EXPECT_EQ(refusal(*trunk, *read), "");
}

// Case 76: each tensor in turn under another name, gone, or there under a second name.
TEST(HeadFile, EveryMissingAndEveryUnusedNameIsTold) {
  const auto trunk = some_trunk();
  HeadConfig config;
  config.modules = 2;
  const HeadTensors good = random_head(*trunk, config, 3);
  EXPECT_EQ(refusal(*trunk, good), "");
  for (const auto& [name, tensor] : good.tensors) {
    HeadTensors gone = good;
    gone.tensors.erase(name);
    EXPECT_NE(refusal(*trunk, gone).find("1 tensors are missing: " + name), std::string::npos);

    HeadTensors renamed = gone;
    renamed.tensors[name + "_x"] = tensor;
    EXPECT_NE(refusal(*trunk, renamed).find("missing: " + name), std::string::npos);
    EXPECT_NE(refusal(*trunk, renamed).find("1 tensors are not used: " + name + "_x"),
              std::string::npos);

    HeadTensors twice = good;
    twice.tensors[name + "_copy"] = tensor;
    EXPECT_NE(refusal(*trunk, twice).find("not used: " + name + "_copy"), std::string::npos);
  }
  HeadTensors empty;
  const std::string told = refusal(*trunk, empty);
  for (const HeadShape& shape : trunk->head_shapes(1))
    EXPECT_NE(told.find(shape.name), std::string::npos) << told;
}

TEST(HeadFile, AnotherTrunksSizesAreToldWithBothShapes) {
  const auto trunk = some_trunk();
  const auto other = load_golden(goldens() / "qwen3/gguf", {});
  const std::string told = refusal(*trunk, random_head(*other, {}, 1));
  EXPECT_NE(told.find("mtp.fc.weight is [32, 64], wanted [48, 96]"), std::string::npos) << told;
  EXPECT_NE(told.find("not used: mtp.layers.0.self_attn.k_norm.weight"), std::string::npos) << told;
}

TEST(HeadFile, ValuesThatAreNotFiniteAreRefusedOnTheWayOutAndIn) {
  const TemporaryFolder folder;
  const auto trunk = some_trunk();
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY, 3.4e38f}) {  // 3.4e38 rounds up
    HeadTensors head = random_head(*trunk, {}, 3);
    head.tensors.at("mtp.layers.0.mlp.up_proj.weight").values[17] = bad;
    const std::string wanted =
        "mtp.layers.0.mlp.up_proj.weight holds a value that is not finite, "
        "at element 17";
    EXPECT_NE(refusal(*trunk, head).find(wanted), std::string::npos);
    const auto written = write_head(folder.path() / "head.safetensors", head);
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().message.find(wanted), std::string::npos);
    EXPECT_FALSE(fs::exists(folder.path() / "head.safetensors"));
  }
  const TensorSpec spec{.name = "mtp.norm.weight", .type = DType::F32, .shape = {2}};
  const auto fill = [](size_t, int64_t, std::span<std::byte> rows) -> Result<void> {
    const float values[2] = {1, std::nanf("")};
    std::memcpy(rows.data(), values, sizeof(values));
    return {};
  };
  ASSERT_TRUE(write_safetensors(folder.path() / "nan.safetensors", {&spec, 1},
                                {{"paceline.head", "1"}}, fill));
  EXPECT_FALSE(read_head(folder.path() / "nan.safetensors"));
}

TEST(HeadFile, MetadataThatMakeNoSenseAreToldTogether) {
  const TemporaryFolder folder;
  const TensorSpec spec{.name = "mtp.norm.weight", .type = DType::BF16, .shape = {2}};
  const auto fill = [](size_t, int64_t, std::span<std::byte>) -> Result<void> { return {}; };
  const auto read = [&](std::map<std::string, std::string> metadata) {
    check(write_safetensors(folder.path() / "x.safetensors", {&spec, 1}, std::move(metadata), fill)
              .has_value(),
          "a file is written");
    const auto head = read_head(folder.path() / "x.safetensors");
    return head ? "" : head.error().message;
  };
  EXPECT_EQ(read({{"paceline.head", "1"}}), "");
  EXPECT_NE(read({}).find("no draft head"), std::string::npos);
  EXPECT_NE(read({{"paceline.head", "2"}}).find("version '2'"), std::string::npos);
  const std::string told = read({{"paceline.head", "1"},
                                 {"paceline.tap", "beside"},
                                 {"paceline.tap_type", "f8"},
                                 {"paceline.modules", "9"},
                                 {"paceline.depths", "0"},
                                 {"paceline.draft_vocabulary", "1,2,2"}});
  for (const char* part : {"paceline.tap wants after or before, found 'beside'",
                           "paceline.tap_type wants bf16 or f32, found 'f8'",
                           "paceline.modules wants a whole number from 1 to 8, found '9'",
                           "paceline.depths wants a whole number from 1 to 64, found '0'",
                           "paceline.draft_vocabulary wants ids in ascending order"})
    EXPECT_NE(told.find(part), std::string::npos) << told;
  for (const char* list : {"", "a", "1,", ",1", "-1", "1, 2", "3,2", "4294967296"})
    EXPECT_NE(read({{"paceline.head", "1"}, {"paceline.draft_vocabulary", list}}), "") << list;
}

TEST(HeadFile, IdsOutsideTheVocabularyOrOutOfOrderAreRefused) {
  const auto trunk = some_trunk();  // 131 words
  for (const std::vector<TokenId>& ids :
       {std::vector<TokenId>{5, 131}, {-1, 5}, {5, 5}, {9, 8}, {70'000}}) {
    HeadConfig config;
    config.draft_vocabulary = ids;
    EXPECT_NE(refusal(*trunk, random_head(*trunk, config, 1)).find("ascending ids below 131"),
              std::string::npos);
  }
}

TEST(HeadFile, AHeadInsideACheckpointIsReadWithItsModules) {
  const TemporaryFolder folder;
  const auto trunk = some_trunk();
  for (const int modules : {1, 3}) {
    HeadConfig config;
    config.modules = modules;
    const HeadTensors head = random_head(*trunk, config, 4);
    ASSERT_TRUE(write_head(folder.path() / "model-00002-of-00002.safetensors", head));
    fs::copy(goldens() / kTrunk / "config.json", folder.path() / "config.json",
             fs::copy_options::overwrite_existing);
    fs::copy(goldens() / kTrunk / "model.safetensors",
             folder.path() / "model-00001-of-00002.safetensors",
             fs::copy_options::overwrite_existing);
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto read = read_head(*checkpoint);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->config.modules, modules);
    EXPECT_EQ(read->tensors.size(), head.tensors.size());
    EXPECT_EQ(refusal(*trunk, *read), "");
  }
  const auto without = Checkpoint::open(goldens() / kTrunk);
  ASSERT_TRUE(without);
  const auto read = read_head(*without);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::NotFound);
}

// Case 36: a head beside the trunk's tensors changes none of the trunk's logits.
TEST(HeadFile, TheTrunkDoesNotCareWhetherAHeadIsThere) {
  const TemporaryFolder folder;
  const auto trunk = some_trunk();
  ASSERT_TRUE(
      write_head(folder.path() / "model-00002-of-00002.safetensors", random_head(*trunk, {}, 4)));
  fs::copy(goldens() / kTrunk / "config.json", folder.path() / "config.json");
  fs::copy(goldens() / kTrunk / "model.safetensors",
           folder.path() / "model-00001-of-00002.safetensors");
  const auto with_head = load_golden(folder.path(), {});
  const std::vector<TokenId> ids = {1, 2, 3, 70, 5, 6};
  EXPECT_TRUE(same_bytes(logits_of(*with_head, ids, 4, CacheType::F16),
                         logits_of(*trunk, ids, 4, CacheType::F16)));
}

}  // namespace
}  // namespace paceline
