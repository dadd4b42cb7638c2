#include "models/dense_weights.h"

#include <array>
#include <charconv>
#include <string>

#include "fmt/format.h"

namespace paceline {
namespace {

// How the checkpoint begins the names of its tensors. Multimodal ones have two ways of their own.
struct Prefixes {
  bool gguf = false;
  std::string model;  // "model." or "language_model.model."
  std::string head;   // "" or "language_model."
  std::string layers() const { return gguf ? "blk." : model + "layers."; }
};

Prefixes prefixes_of(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == Checkpoint::Kind::Gguf) return {true, "", ""};
  constexpr std::array kSpellings = {std::pair{"language_model.model.", "language_model."},
                                     std::pair{"model.language_model.", ""}};
  for (const auto& [model, head] : kSpellings)
    if (checkpoint.find(std::string(model) + "embed_tokens.weight") != nullptr)
      return {false, model, head};
  return {false, "model.", ""};
}

// A tensor's name in both containers: before and after the layer's number.
struct Names {
  std::string prefix;  // "blk.3." or "model.layers.3."
  bool gguf;
  std::string operator()(const char* in_gguf, const char* in_safetensors) const {
    return prefix + (gguf ? in_gguf : in_safetensors);
  }
};

class Asker {
 public:
  Asker(const DenseConfig& config, const Prefixes& prefixes, WeightLoader& loader)
      : c_(config), prefixes_(prefixes), loader_(loader) {}

  void ask(DenseWeights& w) {
    const bool gguf = prefixes_.gguf;
    const std::string output = gguf ? "output.weight" : prefixes_.head + "lm_head.weight";
    loader_.matrix(gguf ? "token_embd.weight" : prefixes_.model + "embed_tokens.weight",
                   c_.vocab_size, c_.dim, &w.embedding);
    norm(gguf ? "output_norm.weight" : prefixes_.model + "norm.weight", c_.dim, &w.final_norm);
    // What is there is the head, whatever the config says.
    if (loader_.has(output) || !c_.tied) loader_.matrix(output, c_.vocab_size, c_.dim, &w.output);
    if (gguf && loader_.has("rope_freqs.weight"))
      loader_.vector("rope_freqs.weight", c_.head_dim / 2, &w.rope_divisors);
    w.layers.resize(c_.n_layers);
    for (int i = 0; i < c_.n_layers; ++i)
      ask_layer({fmt::format("{}{}.", prefixes_.layers(), i), gguf}, w.layers[i]);
  }

 private:
  // The kernels multiply by the whole factor.
  void norm(const std::string& name, int n, std::vector<float>* to) {
    loader_.vector(name, n, to);
    if (c_.norms_lack_one)
      for (float& x : *to) x = 1.0f + x;
  }

  void ask_layer(const Names& names, DenseLayer& w) {
    for (const LayerTensor& tensor : layer_tensors(c_)) {
      const std::string name = names(tensor.gguf, tensor.safetensors);
      const RowOrder order =
          tensor.rotated && c_.qk_rows_in_pairs ? RowOrder::PairsToHalves : RowOrder::AsStored;
      switch (tensor.kind) {
        case LayerTensor::Kind::Matrix:
          loader_.matrix(name, tensor.n_out, tensor.n_in, &(w.*tensor.matrix), order, c_.head_dim);
          break;
        case LayerTensor::Kind::Norm:
          norm(name, tensor.n_out, &(w.*tensor.vector));
          break;
        case LayerTensor::Kind::Bias:
          if (tensor.presence == Bias::Required || loader_.has(name))
            loader_.vector(name, tensor.n_out, &(w.*tensor.vector), order, c_.head_dim);
          break;
      }
    }
  }

  const DenseConfig& c_;
  const Prefixes& prefixes_;
  WeightLoader& loader_;
};

// Whether a tensor of this name would belong to one of the layers that run. Old files keep the
// frequencies of the rotation, which follow from the config.
bool is_of_a_layer(std::string_view name, std::string_view layers, int n_layers) {
  if (!name.starts_with(layers) || name.ends_with(".rotary_emb.inv_freq")) return false;
  name.remove_prefix(layers.size());
  int layer = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), layer);
  return read.ec == std::errc() && layer < n_layers;
}

}  // namespace

std::vector<LayerTensor> layer_tensors(const DenseConfig& c) {
  using Kind = LayerTensor::Kind;
  using L = DenseLayer;
  const int q_dim = c.n_heads * c.head_dim;
  const int kv_dim = c.n_kv_heads * c.head_dim;
  std::vector<LayerTensor> all;
  const auto norm = [&](const char* gguf, const char* name, int n, std::vector<float> L::*to) {
    all.push_back({.kind = Kind::Norm,
                   .gguf = gguf,
                   .safetensors = name,
                   .n_out = n,
                   .n_in = 1,
                   .vector = to});
  };
  const auto matrix = [&](const char* gguf, const char* name, int n_out, int n_in,
                          PackedMatrix L::*to, bool rotated = false) {
    all.push_back({.kind = Kind::Matrix,
                   .gguf = gguf,
                   .safetensors = name,
                   .n_out = n_out,
                   .n_in = n_in,
                   .rotated = rotated,
                   .matrix = to});
  };
  const auto bias = [&](Bias which, const char* gguf, const char* name, int n,
                        std::vector<float> L::*to, bool rotated = false) {
    if (which == Bias::None) return;
    all.push_back({.kind = Kind::Bias,
                   .gguf = gguf,
                   .safetensors = name,
                   .n_out = n,
                   .n_in = 1,
                   .rotated = rotated,
                   .presence = which,
                   .vector = to});
  };
  norm("attn_norm.weight", "input_layernorm.weight", c.dim, &L::attn_norm);
  matrix("attn_q.weight", "self_attn.q_proj.weight", q_dim, c.dim, &L::q, true);
  matrix("attn_k.weight", "self_attn.k_proj.weight", kv_dim, c.dim, &L::k, true);
  matrix("attn_v.weight", "self_attn.v_proj.weight", kv_dim, c.dim, &L::v);
  matrix("attn_output.weight", "self_attn.o_proj.weight", c.dim, q_dim, &L::out);
  if (c.qk_norms) {
    norm("attn_q_norm.weight", "self_attn.q_norm.weight", c.head_dim, &L::q_norm);
    norm("attn_k_norm.weight", "self_attn.k_norm.weight", c.head_dim, &L::k_norm);
  }
  // Without norms behind its sub-layers, a family calls the one in between by the name that
  // belongs, with them, to the one behind attention.
  const char* behind_attention = "post_attention_layernorm.weight";
  if (c.post_norms) {
    norm("post_attention_norm.weight", behind_attention, c.dim, &L::attn_post_norm);
    norm("ffn_norm.weight", "pre_feedforward_layernorm.weight", c.dim, &L::ffn_norm);
    norm("post_ffw_norm.weight", "post_feedforward_layernorm.weight", c.dim, &L::ffn_post_norm);
  } else {
    norm("ffn_norm.weight", behind_attention, c.dim, &L::ffn_norm);
  }
  matrix("ffn_gate.weight", "mlp.gate_proj.weight", c.hidden_dim, c.dim, &L::gate);
  matrix("ffn_up.weight", "mlp.up_proj.weight", c.hidden_dim, c.dim, &L::up);
  matrix("ffn_down.weight", "mlp.down_proj.weight", c.dim, c.hidden_dim, &L::down);
  bias(c.qkv_bias, "attn_q.bias", "self_attn.q_proj.bias", q_dim, &L::q_bias, true);
  bias(c.qkv_bias, "attn_k.bias", "self_attn.k_proj.bias", kv_dim, &L::k_bias, true);
  bias(c.qkv_bias, "attn_v.bias", "self_attn.v_proj.bias", kv_dim, &L::v_bias);
  bias(c.out_bias, "attn_output.bias", "self_attn.o_proj.bias", c.dim, &L::out_bias);
  bias(c.ffn_bias, "ffn_gate.bias", "mlp.gate_proj.bias", c.hidden_dim, &L::gate_bias);
  bias(c.ffn_bias, "ffn_up.bias", "mlp.up_proj.bias", c.hidden_dim, &L::up_bias);
  bias(c.ffn_bias, "ffn_down.bias", "mlp.down_proj.bias", c.dim, &L::down_bias);
  return all;
}

Result<int> vocabulary_rows(const Checkpoint& checkpoint) {
  const Tensor* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
      embedding->shape[0] > (1 << 24))
    return Error{ErrorCode::BadFormat, checkpoint.path().string() +
                                           ": wants a matrix token_embd.weight of 1 to 2^24 rows"};
  return static_cast<int>(embedding->shape[0]);
}

void ask_for_weights(const DenseConfig& config, const Checkpoint& checkpoint, WeightLoader& loader,
                     DenseWeights& weights) {
  const Prefixes prefixes = prefixes_of(checkpoint);
  Asker(config, prefixes, loader).ask(weights);
  loader.refuse_left_over(
      config.family, [layers = prefixes.layers(), n_layers = config.n_layers](
                         std::string_view name) { return is_of_a_layer(name, layers, n_layers); });
}

}  // namespace paceline
