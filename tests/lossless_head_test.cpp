// The text of a run with a draft head is the trunk's own, whatever the head is worth: real trunks,
// heads that are random, zero, or right.
#include <gtest/gtest.h>

#include <cstring>

#include "io/test_files.h"
#include "io/writer.h"
#include "models/head_support.h"
#include "tests/toy_engine.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

fs::path golden(const char* name) { return fs::path(PACELINE_SOURCE_DIR) / "tests/golden" / name; }

Engine opened(const fs::path& path) {
  auto engine = Engine::open(path, {.threads = 2, .use_head = false});
  check(engine.has_value(), "a golden opens");
  return std::move(*engine);
}

std::vector<HeadTensors> some_heads(const Model& trunk) {
  std::vector<HeadTensors> heads;
  HeadConfig shortlist;
  for (TokenId id = 0; id < trunk.info().vocab_size; id += 3) {
    shortlist.draft_vocabulary.push_back(id);
  }
  HeadConfig before;
  before.tap = Tap::Before;
  before.tap_type = TapType::F32;
  HeadConfig three;
  three.modules = 3;
  heads.push_back(random_head(trunk, {}, 1));
  heads.push_back(random_head(trunk, before, 2));
  heads.push_back(random_head(trunk, shortlist, 3));
  heads.push_back(random_head(trunk, three, 4));
  heads.push_back(random_head(trunk, {}, 5, 30.0f));
  heads.push_back(zero_head(trunk, {}));
  return heads;
}

TEST(LosslessHead, AnyHeadAtAnyDepthWritesTheTrunksText) {
  for (const char* name : {"llama/gguf_quant/model.gguf", "llama/f16", "llama/bias", "qwen3/plain",
                           "mistral/window", "gemma3/gguf/model.gguf"}) {
    const Engine for_heads = opened(golden(name));
    int64_t drafted = 0;
    for (const HeadTensors& head : some_heads(for_heads.model())) {
      Engine engine = opened(golden(name));
      const auto used = engine.use_head(head);
      ASSERT_TRUE(used) << used.error().message;
      for (const double temperature : {0.0, 1.0}) {
        Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 70, .ignore_eos = true};
        request.sampling.temperature = temperature;
        const Answer plain = plain_answer(engine, request);
        ASSERT_EQ(plain.error, "");
        request.drafter = DrafterKind::Mtp;
        for (int depth = 1; depth <= 8; ++depth) {
          request.depth = depth;
          const Answer got = answer(engine, request);
          ASSERT_EQ(got.error, "");
          EXPECT_EQ(got.tokens, plain.tokens) << name << ", depth " << depth;
          drafted += got.stats.drafted_by_depth[depth - 1];
        }
      }
    }
    EXPECT_GT(drafted, 500) << name;
  }
}

// A trunk of 70,000 words that always says 69,000: every embedding is a row of ones, the layer adds
// nothing, and one row of the output matrix is ones.
fs::path write_wide_trunk(const TemporaryFolder& folder) {
  constexpr int kVocab = 70'000, kDim = 16, kLoud = 69'000;
  folder.write("config.json", R"({"model_type": "llama", "hidden_size": 16,
    "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1,
    "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 70000, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 256, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "hidden_act": "silu", "eos_token_id": 2})");
  const auto m = [](const char* name, int64_t rows) {
    return TensorSpec{.name = name, .type = DType::BF16, .shape = {rows, kDim}};
  };
  const auto v = [](const char* name) {
    return TensorSpec{.name = name, .type = DType::BF16, .shape = {kDim}};
  };
  const std::vector<TensorSpec> specs = {
      m("model.embed_tokens.weight", kVocab),
      m("lm_head.weight", kVocab),
      v("model.norm.weight"),
      v("model.layers.0.input_layernorm.weight"),
      v("model.layers.0.post_attention_layernorm.weight"),
      m("model.layers.0.self_attn.q_proj.weight", kDim),
      m("model.layers.0.self_attn.k_proj.weight", kDim),
      m("model.layers.0.self_attn.v_proj.weight", kDim),
      m("model.layers.0.self_attn.o_proj.weight", kDim),
      m("model.layers.0.mlp.gate_proj.weight", kDim),
      m("model.layers.0.mlp.up_proj.weight", kDim),
      m("model.layers.0.mlp.down_proj.weight", kDim),
  };
  const auto fill = [&](size_t tensor, int64_t first, std::span<std::byte> bytes) -> Result<void> {
    const bool is_norm = specs[tensor].shape.size() == 1;
    for (size_t i = 0; i < bytes.size() / 2; ++i) {
      const int64_t row = first + static_cast<int64_t>(i) / kDim;
      const bool one = tensor == 0 || is_norm || (tensor == 1 && row == kLoud);
      const bf16 value = to_bf16(one ? 1.0f : 0.0f);
      std::memcpy(bytes.data() + 2 * i, &value, 2);
    }
    return {};
  };
  check(write_safetensors(folder.path() / "model.safetensors", specs, {}, fill).has_value(),
        "a trunk is written");
  return folder.path();
}

// Its head: fc takes the embedding's half over, the rest adds nothing.
HeadTensors wide_head(const Model& trunk, std::vector<TokenId> draft_vocabulary) {
  HeadConfig config;
  config.draft_vocabulary = std::move(draft_vocabulary);
  HeadTensors head = zero_head(trunk, config);
  for (auto& [name, tensor] : head.tensors)
    if (name.find("norm") != std::string::npos)
      std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  HeadTensor& fc = head.tensors.at("mtp.fc.weight");
  for (int64_t i = 0; i < fc.shape[0]; ++i) fc.values[i * fc.shape[1] + i] = 1;
  return head;
}

TEST(LosslessHead, DraftAndVerifyGiveAnIdBeyondSixteenBits) {
  const TemporaryFolder folder;
  const fs::path path = write_wide_trunk(folder);
  for (const std::vector<TokenId>& ids :
       {std::vector<TokenId>{}, {0, 3464, 65'536, 69'000}, {3464, 69'000, 69'999}}) {
    Engine engine = opened(path);
    const auto used = engine.use_head(wide_head(engine.model(), ids));
    ASSERT_TRUE(used) << used.error().message;
    Request request{.prompt = {69'999}, .max_tokens = 21, .depth = 4};
    request.drafter = DrafterKind::Mtp;
    const Answer got = answer(engine, request);
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.tokens, std::vector<TokenId>(21, 69'000));
    EXPECT_EQ(got.stats.accepted_by_depth, (std::vector<int64_t>{4, 4, 4, 4}));
  }
  // Where the id is not in the list nothing stands, and the text is the same.
  Engine engine = opened(path);
  ASSERT_TRUE(engine.use_head(wide_head(engine.model(), {0, 3464, 65'536})));
  Request request{.prompt = {69'999}, .max_tokens = 21, .depth = 4};
  request.drafter = DrafterKind::Mtp;
  const Answer got = answer(engine, request);
  EXPECT_EQ(got.tokens, std::vector<TokenId>(21, 69'000));
  EXPECT_EQ(got.stats.accepted_by_depth, (std::vector<int64_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace paceline
