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

const fs::path kPlain = fs::path(PACELINE_SOURCE_DIR) / "tests/golden/llama/plain";

// The tiny checkpoint of two layers with some keys of its config.json changed; null takes one out.
Result<std::unique_ptr<Model>> load_with(const Json& changes) {
  const TemporaryFolder folder;
  Json config = Json::parse(read_whole(kPlain / "config.json"));
  config.merge_patch(changes);
  folder.write("config.json", config.dump());
  fs::copy_file(kPlain / "model.safetensors", folder.path() / "model.safetensors");
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
