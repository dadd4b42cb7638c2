// What a config may not say, and what a claim in it may not cost.
#include "models/dense_config.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "io/test_files.h"
#include "models/registry.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path goldens() { return fs::path(PACELINE_SOURCE_DIR) / "tests/golden"; }

// A tiny checkpoint with some keys of its config.json changed; null takes one out. as_null: a key
// that is to be there and null.
Result<std::unique_ptr<Model>> load_with(const Json& changes, const char* name = "llama/plain",
                                         const char* as_null = nullptr) {
  const TemporaryFolder folder;
  Json config = Json::parse(read_whole(goldens() / name / "config.json"));
  config.merge_patch(changes);
  if (as_null != nullptr) config[as_null] = nullptr;
  folder.write("config.json", config.dump());
  fs::copy_file(goldens() / name / "model.safetensors", folder.path() / "model.safetensors");
  const auto checkpoint = Checkpoint::open(folder.path());
  if (!checkpoint) return checkpoint.error();
  return load_model(*checkpoint, {});
}

TEST(DenseConfig, FaultsNameTheKey) {
  const auto refuses = [](const Json& changes, const std::vector<std::string>& words,
                          ErrorCode code = ErrorCode::BadFormat) {
    SCOPED_TRACE(changes.dump());
    expect_refused(load_with(changes), code, words);
  };
  ASSERT_TRUE(load_with(Json::object()));
  for (const char* key : {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size",
                          "max_position_embeddings", "num_attention_heads"}) {
    refuses({{key, nullptr}}, {"config.json", key, "none"});
    refuses({{key, 0}}, {key, "is 0"});
    refuses({{key, -1}}, {key, "is -1"});
    refuses({{key, 2.5}}, {key, "something else"});
    refuses({{key, "48"}}, {key, "something else"});
    refuses({{key, 1e30}}, {key});
    refuses({{key, uint64_t{1} << 63}}, {key});
  }
  refuses({{"rms_norm_eps", nullptr}}, {"rms_norm_eps"});
  refuses({{"rms_norm_eps", 0}}, {"rms_norm_eps", "above 0"});
  refuses({{"num_key_value_heads", 4}}, {"6 heads", "4 key heads"});
  refuses({{"head_dim", 15}}, {"15", "even"});
  refuses({{"tie_word_embeddings", "yes"}}, {"tie_word_embeddings", "true or false"});
  refuses({{"hidden_act", "gelu"}}, {"hidden_act", "gelu"}, ErrorCode::Unsupported);
  refuses({{"model_type", "gpt2"}}, {"gpt2", "llama"}, ErrorCode::Unsupported);
  refuses({{"model_type", nullptr}}, {"model_type"});
  refuses({{"rope_parameters", {{"rope_type", "yarn"}}}}, {"yarn", "linear"},
          ErrorCode::Unsupported);
  refuses({{"rope_parameters", {{"rope_type", "linear"}}}}, {"factor"});
  refuses({{"rope_parameters", "none"}}, {"rope_parameters", "object"});
  refuses({{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}}},
           {"rope_scaling", {{"rope_type", "linear"}, {"factor", 4}}}},
          {"different things"});
}

TEST(DenseConfig, UnknownFamiliesAreToldTheKnownOnes) {
  expect_refused(load_with({{"model_type", "mamba2"}}), ErrorCode::Unsupported,
                 {"'mamba2'", "gemma3, gemma3_text, llama, mistral, qwen2, qwen3"});
}

// What would change the results is refused by its name, unless it says what is so anyway.
TEST(DenseConfig, SettingsThatAreNotComputedAreRefused) {
  const auto refuses = [](const char* family, const Json& changes, const char* word,
                          const char* as_null = nullptr) {
    SCOPED_TRACE(std::string(family) + changes.dump());
    const auto model = load_with(changes, family, as_null);
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().message.find(word), std::string::npos) << model.error().message;
  };
  for (const char* family : {"llama/plain", "mistral/window", "qwen2/biases", "qwen3/plain"}) {
    for (const auto& [key, value] : {std::pair<const char*, Json>{"attn_logit_softcapping", 50.0},
                                     {"final_logit_softcapping", 30.0},
                                     {"query_pre_attn_scalar", 16},
                                     {"partial_rotary_factor", 0.5},
                                     {"embedding_multiplier", 12.0},
                                     {"residual_multiplier", 0.2},
                                     {"use_bidirectional_attention", true},
                                     {"num_local_experts", 8}})
      refuses(family, {{key, value}}, key);
    EXPECT_TRUE(load_with({{"partial_rotary_factor", 1.0}, {"num_local_experts", 0}}, family));
  }
  refuses("gemma3/objects", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping");
  refuses("gemma3/objects", {{"use_bidirectional_attention", true}}, "use_bidirectional");
  refuses("gemma3/objects", {{"attention_bias", true}}, "attention_bias");
  refuses("gemma3/objects", {{"hidden_activation", "relu"}}, "hidden_activation");
  refuses("gemma3/objects", {{"layer_types", {"full_attention", "chunked", "full_attention"}}},
          "chunked");
  refuses("gemma3/objects", {{"layer_types", {"full_attention"}}}, "1 layers");
  refuses("gemma3/objects", {{"sliding_window", nullptr}}, "sliding_window");
  refuses("gemma3/objects", {{"rope_parameters", {{"full_attention", {{"rope_type", "yarn"}}}}}},
          "yarn");
  refuses("gemma3/flat", {{"rope_parameters", {{"rope_type", "default"}}}}, "full_attention");
  refuses("gemma3/flat",
          {{"rope_parameters", {{"full_attention", {{"rope_type", "linear"}, {"factor", 2}}}}}},
          "different things");
  refuses("qwen3/plain", Json::object(), "head_dim", "head_dim");
  refuses("qwen3/plain", {{"num_key_value_heads", nullptr}}, "num_key_value_heads");
  refuses("qwen2/biases", {{"layer_types", {"full_attention", "sliding_attention"}}},
          "use_sliding_window");
  refuses("mistral/window", {{"attention_bias", true}}, "attention_bias");
}

// A tensor of a layer that nobody computes with, and one that is computed with and not there.
TEST(DenseConfig, TensorsOfALayerThatAreLeftOverAreNamed) {
  expect_refused(load_with({{"model_type", "llama"}}, "qwen3/plain"), ErrorCode::Unsupported,
                 {"4 tensors", "family llama", "model.layers.0.self_attn.q_norm.weight"});
  expect_refused(load_with({{"model_type", "mistral"}}, "qwen2/biases"), ErrorCode::Unsupported,
                 {"6 tensors", "family mistral", "model.layers.1.self_attn.v_proj.bias"});
  expect_refused(load_with({{"model_type", "qwen2"}}, "mistral/window"), ErrorCode::BadFormat,
                 {"6 tensors are missing", "model.layers.0.self_attn.q_proj.bias"});
  expect_refused(load_with({{"attention_bias", true}}, "qwen3/plain"), ErrorCode::BadFormat,
                 {"8 tensors are missing", "model.layers.1.self_attn.o_proj.bias"});
}

TEST(DenseConfig, WindowsAreReadAsEachFamilySpellsThem) {
  const auto bytes = [](const Json& changes, const char* name, const char* as_null = nullptr) {
    const auto model = load_with(changes, name, as_null);
    EXPECT_TRUE(model) << model.error().message;
    return model ? (*(*model)->make_state(512, CacheType::F16))->bytes() : 0;
  };
  constexpr int64_t kPage = 2 * 2 * 16 * 64;  // keys and values of one head in 64 positions
  constexpr int64_t kFull = 9 * kPage;        // a layer that sees all of 512 positions, and a tree
  EXPECT_EQ(bytes({{"sliding_window", 1}}, "mistral/window"), 2 * 3 * kPage);
  EXPECT_EQ(bytes(Json::object(), "mistral/window", "sliding_window"), 2 * kFull);
  EXPECT_EQ(bytes({{"sliding_window", nullptr}}, "mistral/window"), 2 * kFull);  // means 4096
  EXPECT_EQ(bytes({{"sliding_window", 1}}, "qwen2/biases"), 2 * kFull);          // switched off
  const Json on = {{"use_sliding_window", true}, {"sliding_window", 1}, {"layer_types", nullptr}};
  EXPECT_EQ(bytes(on, "qwen2/window"), kFull + 3 * kPage);
  EXPECT_EQ(bytes({{"sliding_window", 1}, {"sliding_window_pattern", 6}}, "gemma3/flat"),
            3 * 3 * kPage);
  EXPECT_EQ(bytes({{"sliding_window", 1}, {"sliding_window_pattern", nullptr}}, "gemma3/flat"),
            3 * 3 * kPage);
  // The list says more than the pattern.
  EXPECT_EQ(bytes({{"sliding_window", 1}, {"_sliding_window_pattern", 1}}, "gemma3/objects"),
            kFull + 2 * 3 * kPage);
}

TEST(DenseConfig, ShapesThatTheTensorsDoNotHaveAreTold) {
  expect_refused(load_with({{"intermediate_size", 96}}), ErrorCode::BadFormat,
                 {"mlp.gate_proj.weight", "[80, 48]", "[96, 48]"});
  expect_refused(load_with({{"num_hidden_layers", 3}}), ErrorCode::BadFormat,
                 {"9 tensors are missing", "model.layers.2.self_attn.q_proj.weight"});
}

// The most memory that this process has had so far.
int64_t peak_bytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// What a claim costs must not grow with the claim.
TEST(DenseConfig, ClaimsAreNotBelieved) {
  expect_refused(load_with({{"num_hidden_layers", 1 << 24}}), ErrorCode::BadFormat,
                 {"16777216 layers", "21 tensors"});
  expect_refused(load_with({{"num_hidden_layers", 2147483647}}, "mistral/window"),
                 ErrorCode::BadFormat, {"layer count of 2147483647"});
  const int64_t before = peak_bytes();
  const auto model = load_with({{"max_position_embeddings", 1 << 24}});
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->info().context_length, 1 << 24);
  const auto state = (*model)->make_state(16, CacheType::F16);
  ASSERT_TRUE(state);
  EXPECT_LT((*state)->bytes(), 1 << 20);
  EXPECT_LT(peak_bytes() - before, 64 << 20);
}

TEST(DenseConfig, RotationsThatNoModelHasAreRefused) {
  for (const Json& rope : {Json{{"rope_type", "default"}, {"rope_theta", 1e-300}},
                           Json{{"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", 1e-300}}})
    expect_refused(load_with({{"rope_parameters", rope}}), ErrorCode::BadFormat,
                   {"radians a position"});
}

}  // namespace
}  // namespace paceline
