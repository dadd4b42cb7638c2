// A tiny trunk from a file, and dumps of made-up text, for tests of this box.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/dump.h"
#include "io/dump_writer.h"
#include "io/test_files.h"
#include "io/writer.h"
#include "models/dense_layer.h"
#include "models/registry.h"
#include "train/random.h"
#include "train/trainer.h"

namespace paceline::train {

constexpr int kToyDim = 32;

// A llama of one layer with random bf16 weights.
inline std::unique_ptr<Model> toy_model(const TemporaryFolder& folder, int vocab_size,
                                        int threads = 2) {
  constexpr int kHidden = 64, kHeads = 4, kKvHeads = 2, kHeadDim = 8;
  const nlohmann::json config = {{"model_type", "llama"},           {"hidden_act", "silu"},
                                 {"hidden_size", kToyDim},          {"intermediate_size", kHidden},
                                 {"num_hidden_layers", 1},          {"num_attention_heads", kHeads},
                                 {"num_key_value_heads", kKvHeads}, {"head_dim", kHeadDim},
                                 {"max_position_embeddings", 1024}, {"rms_norm_eps", 1e-5},
                                 {"rope_theta", 10000.0},           {"tie_word_embeddings", true},
                                 {"vocab_size", vocab_size}};
  folder.write("model/config.json", config.dump());
  const std::string layer = "model.layers.0.";
  std::vector<TensorSpec> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors.push_back({name, DType::BF16, std::move(shape)});
  };
  add("model.embed_tokens.weight", {vocab_size, kToyDim});
  add("model.norm.weight", {kToyDim});
  add(layer + "input_layernorm.weight", {kToyDim});
  add(layer + "post_attention_layernorm.weight", {kToyDim});
  add(layer + "self_attn.q_proj.weight", {kHeads * kHeadDim, kToyDim});
  add(layer + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kToyDim});
  add(layer + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kToyDim});
  add(layer + "self_attn.o_proj.weight", {kToyDim, kHeads * kHeadDim});
  add(layer + "mlp.gate_proj.weight", {kHidden, kToyDim});
  add(layer + "mlp.up_proj.weight", {kHidden, kToyDim});
  add(layer + "mlp.down_proj.weight", {kToyDim, kHidden});
  Random random(7);
  const auto fill = [&](size_t tensor, int64_t, std::span<std::byte> rows) -> Result<void> {
    const bool norm = tensors[tensor].shape.size() == 1;
    const float size = tensor == 0 ? 0.5f : 0.15f;
    for (size_t i = 0; i + 2 <= rows.size(); i += 2) {
      const bf16 value = to_bf16(norm ? 1.0f : size * random.normal());
      std::memcpy(rows.data() + i, &value, sizeof(value));
    }
    return {};
  };
  auto written = write_safetensors(folder.path() / "model/model.safetensors", tensors, {}, fill);
  EXPECT_TRUE(written.has_value());
  auto checkpoint = Checkpoint::open(folder.path() / "model");
  LoadOptions options;
  options.threads = threads;
  auto model = load_model(*checkpoint, options);
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return std::move(*model);
}

struct ToyText {
  int streams = 40;
  int tokens = 41;  // a stream
  int n_prompt = 4;
  Tap tap = Tap::After;
  // The token at place i of a stream, those before it being known.
  std::function<TokenId(int i, const std::vector<TokenId>& before, Random& random)> token;
  // Changes a row of hiddens, which are random otherwise.
  std::function<void(int stream, int row, std::span<float> hidden)> edit = {};
};

// Pairs: a random one of `words`, then the one that belongs to it, the next in the list.
inline ToyText pairs(const std::vector<TokenId>& words) {
  ToyText text;
  text.token = [words](int i, const std::vector<TokenId>& before, Random& random) {
    const int n = static_cast<int>(std::ssize(words));
    if (i % 2 == 0) return words[random.below(n)];
    const auto at = std::ranges::find(words, before.back()) - words.begin();
    return words[(at + 1) % n];
  };
  return text;
}
// Every token random.
inline ToyText noise(const std::vector<TokenId>& words) {
  ToyText text;
  text.token = [words](int, const std::vector<TokenId>&, Random& random) {
    return words[random.below(static_cast<int>(std::ssize(words)))];
  };
  return text;
}

inline std::vector<TokenId> words_from(TokenId first, int n) {
  std::vector<TokenId> words(n);
  for (int i = 0; i < n; ++i) words[i] = first + i;
  return words;
}

inline Dump toy_dump(const TemporaryFolder& folder, const std::string& name, int vocab_size,
                     const ToyText& text) {
  DumpHeader header;
  header.hidden_width = kToyDim;
  header.tap = text.tap;
  header.family = "llama";
  header.vocab_size = vocab_size;
  header.numerics = "portable";
  Random random(3);
  {
    auto writer = DumpWriter::open(folder.path() / name, header);
    EXPECT_TRUE(writer.has_value());
    for (int s = 0; s < text.streams; ++s) {
      NewStream stream{.id = "s" + std::to_string(s), .hiddens = HiddenRows(header.type, kToyDim)};
      stream.n_prompt = text.n_prompt;
      stream.budget = text.tokens - text.n_prompt;
      stream.cycle_start = text.tokens - 1;
      for (int i = 0; i < text.tokens; ++i)
        stream.tokens.push_back(text.token(i, stream.tokens, random));
      std::vector<float> row(kToyDim);
      for (int i = 0; i + 1 < text.tokens; ++i) {
        for (float& x : row) x = random.normal();
        if (text.edit) text.edit(s, i, row);
        stream.hiddens.append(row);
      }
      auto added = writer->add(stream);
      EXPECT_TRUE(added.has_value()) << added.error().message;
    }
  }
  auto dump = Dump::open(folder.path() / name);
  EXPECT_TRUE(dump.has_value()) << dump.error().message;
  return std::move(*dump);
}

// Everything that a run needs, and what it said.
struct ToyRun {
  TemporaryFolder folder;
  int vocab_size;
  std::unique_ptr<Model> model;
  Dump dump;
  TrainOptions options;
  DataOptions data_options;
  HeadConfig head;
  int shortlist;
  uint64_t head_seed = 1;  // of the head that the run begins with
  std::vector<std::string> warnings;
  std::function<bool()> stop;

  ToyRun(int vocab, const ToyText& text)
      : vocab_size(vocab),
        model(toy_model(folder, vocab)),
        dump(toy_dump(folder, "dump", vocab, text)),
        shortlist(vocab) {
    head.tap = text.tap;
    options.depths = 2;
    options.first_depth_share = 0;
    options.targets = Targets::Hard;
    options.rate = 3e-3f;
    options.warmup = 10;
    options.batch = 4;
    options.steps = 100;
    options.evaluation_tokens = 120;
    data_options.held_out = 0.2;
  }

  std::filesystem::path out() const { return folder.path() / "head.safetensors"; }

  Result<TrainingData> data() {
    return TrainingData::of(dump, data_options, *model->dense_trunk()->pool);
  }
  Result<TrainReport> run(bool resume = false) {
    auto training = data();
    if (!training) return training.error();
    auto trunk = TrunkSide::of(*model);
    if (!trunk) return trunk.error();
    if (head.draft_vocabulary.empty())
      head.draft_vocabulary = training->shortlist(shortlist, {}, vocab_size);
    head.data_sha256 = training->sha256();
    TrainInputs inputs{&*model, &*training, trunk->new_head(head, head_seed), out(), resume};
    TrainHooks hooks;
    hooks.stop = stop;
    hooks.warn = [this](const std::string& text) { warnings.push_back(text); };
    return train(inputs, options, hooks);
  }
  bool warned(const std::string& of) const {
    return std::ranges::any_of(
        warnings, [&](const std::string& text) { return text.find(of) != std::string::npos; });
  }
};

}  // namespace paceline::train
