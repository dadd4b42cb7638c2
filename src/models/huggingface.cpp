#include "models/huggingface.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/check.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/shown.h"
#include "kernels/rope.h"
#include "models/dense_weights.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kNamesInAnError = 20;

Error error_in(const Checkpoint& gguf, ErrorCode code, const std::string& what) {
  return {code, shown_path(gguf.path()) + ": " + what};
}

// Settles biases that only the file tells of: in all layers, or in none. A config.json says
// attention_bias for q, k, v and the output together.
Result<void> settle_biases(const Checkpoint& gguf, DenseConfig& config) {
  const auto settle = [&](const std::vector<Bias*>& group,
                          const std::vector<const char*>& names) -> Result<void> {
    if (std::ranges::none_of(group, [](const Bias* b) { return *b == Bias::IfThere; })) return {};
    std::vector<std::string> missing;
    for (int layer = 0; layer < config.n_layers; ++layer)
      for (const char* name : names) {
        const std::string full = fmt::format("blk.{}.{}", layer, name);
        if (gguf.find(full) == nullptr) missing.push_back(full);
      }
    const bool none = missing.size() == names.size() * static_cast<size_t>(config.n_layers);
    if (!none && !missing.empty())
      return error_in(gguf, ErrorCode::Unsupported,
                      fmt::format("a config.json announces biases for all layers or none, and {} "
                                  "are not there: {}",
                                  missing.size(), listed(missing, kNamesInAnError)));
    for (Bias* bias : group) *bias = none ? Bias::None : Bias::Required;
    return {};
  };
  if (config.out_bias == Bias::IfThere) {
    auto settled = settle({&config.qkv_bias, &config.out_bias},
                          {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias"});
    if (!settled) return settled;
  }
  return settle({&config.ffn_bias}, {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"});
}

class Collector {
 public:
  explicit Collector(const Checkpoint& gguf) : gguf_(gguf) {}

  // n_in 0: a vector.
  void take(const std::string& in_gguf, FolderTensor as, int64_t n_out, int64_t n_in) {
    as.source = gguf_.find(in_gguf);
    if (as.source == nullptr) {
      missing_.push_back(in_gguf);
      return;
    }
    used_.insert(in_gguf);
    std::vector<int64_t> shape{n_out};
    if (n_in > 0) shape.push_back(n_in);
    if (as.source->shape != shape)
      misshapen_.push_back(fmt::format("{} is [{}], wanted [{}]", in_gguf,
                                       fmt::join(as.source->shape, ", "), fmt::join(shape, ", ")));
    contents_.tensors.push_back(std::move(as));
  }
  void take(const LayerTensor& tensor, int layer, const DenseConfig& c, bool less_one) {
    const bool paired = tensor.rotated && c.qk_rows_in_pairs;
    take(fmt::format("blk.{}.{}", layer, tensor.gguf),
         {.name = fmt::format("model.layers.{}.{}", layer, tensor.safetensors),
          .order = paired ? RowOrder::PairsToHalves : RowOrder::AsStored,
          .head_dim = c.head_dim,
          .less_one = less_one && tensor.kind == LayerTensor::Kind::Norm},
         tensor.n_out, tensor.kind == LayerTensor::Kind::Matrix ? tensor.n_in : 0);
  }
  void use(const char* name) { used_.insert(name); }

  Result<FolderContents> finish(const std::string& family, int n_layers) {
    if (!missing_.empty())
      return error_in(gguf_, ErrorCode::BadFormat,
                      fmt::format("{} tensors are missing: {}", missing_.size(),
                                  listed(missing_, kNamesInAnError)));
    if (!misshapen_.empty())
      return error_in(gguf_, ErrorCode::BadFormat,
                      fmt::format("{} tensors have other shapes: {}", misshapen_.size(),
                                  listed(misshapen_, kNamesInAnError)));
    std::vector<std::string> of_layers;
    for (const Tensor& tensor : gguf_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      (is_of_a_layer(tensor.name, n_layers) ? of_layers : contents_.left_out)
          .push_back(tensor.name);
    }
    if (!of_layers.empty())
      return error_in(gguf_, ErrorCode::Unsupported,
                      fmt::format("{} tensors of its layers are no part of family {}: {}",
                                  of_layers.size(), family, listed(of_layers, kNamesInAnError)));
    return std::move(contents_);
  }
  FolderContents& contents() { return contents_; }

 private:
  static bool is_of_a_layer(std::string_view name, int n_layers) {
    if (!name.starts_with("blk.")) return false;
    int layer = 0;
    const auto read = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    return read.ec == std::errc() && layer < n_layers;
  }

  const Checkpoint& gguf_;
  FolderContents contents_;
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> missing_;
  std::vector<std::string> misshapen_;
};

bool same_matrix(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.data, b.data);
}

bool gives(const Llama3Scaling& scaling, std::span<const double> plain,
           std::span<const float> divisors) {
  std::vector<double> scaled(plain.begin(), plain.end());
  scale_llama3(scaled, scaling);
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wanted = plain[i] / scaled[i];
    if (!(std::abs(divisors[i] - wanted) <= 1e-5 * wanted)) return false;
  }
  return true;
}

// The scaling whose divisors a GGUF file keeps instead of it. Llama 3.1 and later have one ramp and
// differ in the factor, which is the largest divisor, and perhaps in the context they grew from.
Result<std::optional<Llama3Scaling>> scaling_of(const Checkpoint& gguf, const DenseConfig& c) {
  const Tensor* tensor = gguf.find("rope_freqs.weight");
  if (tensor == nullptr) return std::optional<Llama3Scaling>();
  if (tensor->shape != std::vector<int64_t>{c.head_dim / 2})
    return error_in(gguf, ErrorCode::BadFormat,
                    fmt::format("rope_freqs.weight has {} values, wanted {}", tensor->elements(),
                                c.head_dim / 2));
  std::vector<float> divisors(static_cast<size_t>(c.head_dim / 2));
  dequantize(*tensor, 0, divisors);
  if (std::ranges::all_of(divisors, [](float x) { return x == 1; }))
    return std::optional<Llama3Scaling>();
  const double factor = *std::ranges::max_element(divisors);
  const std::vector<double> plain = rope_frequencies(c.rope.theta, c.head_dim);
  for (const int original : {8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 16384, 32768}) {
    const Llama3Scaling scaling{factor, 1.0, 4.0, static_cast<double>(original)};
    if (gives(scaling, plain, divisors)) return std::optional<Llama3Scaling>(scaling);
  }
  return error_in(gguf, ErrorCode::Unsupported,
                  "rope_freqs.weight has other divisors than Llama 3's scaling gives, and a "
                  "config.json has no words for them");
}

// The shortest decimal that reads back as this float.
double shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  double number = 0;
  std::from_chars(text, end.ptr, number);
  return number;
}

struct FamilyNames {
  std::string_view family;
  const char* architecture;
  const char* model_type;
};
constexpr FamilyNames kFamilyNames[] = {
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text"},
    {"llama", "LlamaForCausalLM", "llama"},
    {"qwen2", "Qwen2ForCausalLM", "qwen2"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3"},
};

void add_gemma_settings(const DenseConfig& c, Json& json) {
  json["hidden_activation"] = "gelu_pytorch_tanh";
  // Whole in every model there is; transformers wants it so.
  const double scale = c.query_scale == 0 ? c.head_dim : c.query_scale;
  json["query_pre_attn_scalar"] =
      scale == std::floor(scale) ? Json(static_cast<int64_t>(scale)) : Json(scale);
  json["sliding_window"] = c.window > 0 ? c.window : c.context_length;
  Json types = Json::array();
  for (int layer = 0; layer < c.n_layers; ++layer)
    types.push_back(c.layer_slides(layer) ? "sliding_attention" : "full_attention");
  json["layer_types"] = types;
  json["rope_local_base_freq"] = c.sliding_rope ? c.sliding_rope->theta : c.rope.theta;
  json["final_logit_softcapping"] = c.logit_cap > 0 ? Json(c.logit_cap) : Json(nullptr);
  json["attn_logit_softcapping"] = nullptr;
}

Json end_ids_json(const std::vector<int64_t>& ends) {
  if (ends.empty()) return nullptr;
  return ends.size() == 1 ? Json(ends.front()) : Json(ends);
}

}  // namespace

Result<FolderContents> folder_contents(const Checkpoint& gguf, const DenseConfig& given) {
  DenseConfig config = given;
  const auto n_words = vocabulary_rows(gguf);
  if (!n_words) return n_words.error();
  if (auto settled = settle_biases(gguf, config); !settled) return settled.error();
  const bool less_one = config.family == "gemma3";  // their converter adds the one

  Collector collector(gguf);
  collector.take("token_embd.weight", {.name = "model.embed_tokens.weight"}, *n_words, config.dim);
  for (int layer = 0; layer < config.n_layers; ++layer)
    for (const LayerTensor& tensor : layer_tensors(config))
      collector.take(tensor, layer, config, less_one);
  collector.take("output_norm.weight", {.name = "model.norm.weight", .less_one = less_one},
                 config.dim, 0);
  collector.use("rope_freqs.weight");  // a setting of config.json
  const Tensor* output = gguf.find("output.weight");
  const Tensor* embedding = gguf.find("token_embd.weight");
  if (output != nullptr && !same_matrix(*output, *embedding)) {
    collector.take("output.weight", {.name = "lm_head.weight"}, *n_words, config.dim);
  } else {
    collector.contents().tied = true;
    collector.use("output.weight");
  }
  return collector.finish(config.family, config.n_layers);
}

Result<std::string> folder_config(const Checkpoint& gguf, const DenseConfig& c,
                                  const FolderContents& contents, const SpecialIds& ids) {
  const auto* names = std::ranges::find(kFamilyNames, c.family, &FamilyNames::family);
  check(names != std::end(kFamilyNames), "a family that GGUF knows has a name in config.json");
  const auto scaling = scaling_of(gguf, c);
  if (!scaling) return scaling.error();
  const auto holds = [&](std::string_view ending) {
    return std::ranges::any_of(contents.tensors, [&](const FolderTensor& tensor) {
      return tensor.name.ends_with(ending);
    });
  };

  Json json{{"architectures", {names->architecture}},
            {"model_type", names->model_type},
            {"hidden_size", c.dim},
            {"intermediate_size", c.hidden_dim},
            {"num_hidden_layers", c.n_layers},
            {"num_attention_heads", c.n_heads},
            {"num_key_value_heads", c.n_kv_heads},
            {"head_dim", c.head_dim},
            {"vocab_size", contents.tensors.front().source->shape[0]},
            {"max_position_embeddings", c.context_length},
            {"rms_norm_eps", shortest(c.norm_eps)},
            {"rope_theta", c.rope.theta},
            {"rope_scaling", nullptr},
            {"tie_word_embeddings", contents.tied},
            {"bos_token_id", ids.bos ? Json(*ids.bos) : Json(nullptr)},
            {"eos_token_id", ids.ends.empty() ? Json(nullptr) : Json(ids.ends.front())},
            {"pad_token_id", ids.pad ? Json(*ids.pad) : Json(nullptr)},
            {"attention_dropout", 0.0},
            {"torch_dtype", "bfloat16"}};
  if (c.rope.linear)
    json["rope_scaling"] = Json{{"rope_type", "linear"}, {"factor", *c.rope.linear}};
  if (*scaling)
    json["rope_scaling"] = Json{
        {"rope_type", "llama3"},
        {"factor", (*scaling)->factor},
        {"low_freq_factor", (*scaling)->low_freq_factor},
        {"high_freq_factor", (*scaling)->high_freq_factor},
        {"original_max_position_embeddings", static_cast<int64_t>((*scaling)->original_positions)}};
  if (c.family == "gemma3")
    add_gemma_settings(c, json);
  else
    json["hidden_act"] = "silu";
  if (c.family.starts_with("qwen")) json["use_sliding_window"] = false;
  if (c.family != "qwen2") json["attention_bias"] = holds("self_attn.o_proj.bias");
  if (c.family == "llama") json["mlp_bias"] = holds("mlp.gate_proj.bias");
  return json.dump(2) + "\n";
}

std::string folder_generation_config(const SpecialIds& ids) {
  Json json{{"eos_token_id", end_ids_json(ids.ends)}};
  if (ids.bos) json["bos_token_id"] = *ids.bos;
  if (ids.pad) json["pad_token_id"] = *ids.pad;
  return json.dump(2) + "\n";
}

}  // namespace paceline
