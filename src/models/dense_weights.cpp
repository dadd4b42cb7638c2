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
  void bias(Bias which, const std::string& name, int n, std::vector<float>* to,
            RowOrder order = RowOrder::AsStored) {
    if (which == Bias::Required || (which == Bias::IfThere && loader_.has(name)))
      loader_.vector(name, n, to, order, c_.head_dim);
  }

  void ask_layer(const Names& name, DenseLayer& w) {
    const DenseConfig& c = c_;
    const int q_dim = c.n_heads * c.head_dim;
    const int kv_dim = c.n_kv_heads * c.head_dim;
    const RowOrder qk_order = c.qk_rows_in_pairs ? RowOrder::PairsToHalves : RowOrder::AsStored;

    norm(name("attn_norm.weight", "input_layernorm.weight"), c.dim, &w.attn_norm);
    loader_.matrix(name("attn_q.weight", "self_attn.q_proj.weight"), q_dim, c.dim, &w.q, qk_order,
                   c.head_dim);
    loader_.matrix(name("attn_k.weight", "self_attn.k_proj.weight"), kv_dim, c.dim, &w.k, qk_order,
                   c.head_dim);
    loader_.matrix(name("attn_v.weight", "self_attn.v_proj.weight"), kv_dim, c.dim, &w.v);
    loader_.matrix(name("attn_output.weight", "self_attn.o_proj.weight"), c.dim, q_dim, &w.out);
    if (c.qk_norms) {
      norm(name("attn_q_norm.weight", "self_attn.q_norm.weight"), c.head_dim, &w.q_norm);
      norm(name("attn_k_norm.weight", "self_attn.k_norm.weight"), c.head_dim, &w.k_norm);
    }
    // Without norms behind its sub-layers, a family calls the one in between by the name that
    // belongs, with them, to the one behind attention.
    if (c.post_norms) {
      norm(name("post_attention_norm.weight", "post_attention_layernorm.weight"), c.dim,
           &w.attn_post_norm);
      norm(name("ffn_norm.weight", "pre_feedforward_layernorm.weight"), c.dim, &w.ffn_norm);
      norm(name("post_ffw_norm.weight", "post_feedforward_layernorm.weight"), c.dim,
           &w.ffn_post_norm);
    } else {
      norm(name("ffn_norm.weight", "post_attention_layernorm.weight"), c.dim, &w.ffn_norm);
    }
    loader_.matrix(name("ffn_gate.weight", "mlp.gate_proj.weight"), c.hidden_dim, c.dim, &w.gate);
    loader_.matrix(name("ffn_up.weight", "mlp.up_proj.weight"), c.hidden_dim, c.dim, &w.up);
    loader_.matrix(name("ffn_down.weight", "mlp.down_proj.weight"), c.dim, c.hidden_dim, &w.down);
    bias(c.qkv_bias, name("attn_q.bias", "self_attn.q_proj.bias"), q_dim, &w.q_bias, qk_order);
    bias(c.qkv_bias, name("attn_k.bias", "self_attn.k_proj.bias"), kv_dim, &w.k_bias, qk_order);
    bias(c.qkv_bias, name("attn_v.bias", "self_attn.v_proj.bias"), kv_dim, &w.v_bias);
    bias(c.out_bias, name("attn_output.bias", "self_attn.o_proj.bias"), c.dim, &w.out_bias);
    bias(c.ffn_bias, name("ffn_gate.bias", "mlp.gate_proj.bias"), c.hidden_dim, &w.gate_bias);
    bias(c.ffn_bias, name("ffn_up.bias", "mlp.up_proj.bias"), c.hidden_dim, &w.up_bias);
    bias(c.ffn_bias, name("ffn_down.bias", "mlp.down_proj.bias"), c.dim, &w.down_bias);
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
