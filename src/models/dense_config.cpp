#include "models/dense_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fmt/format.h"
#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

// The kind of scaling that an object names: "rope_type", or "type" in older files.
std::string rope_kind(ConfigReader& in, const Json& object, const char* name) {
  for (const char* spelling : {"rope_type", "type"}) {
    const auto it = object.find(spelling);
    if (it != object.end() && it->is_string()) return it->get<std::string>();
  }
  in.fail(fmt::format("{} names no rope_type", name));
  return "default";
}

bool same_scaling(const RopeConfig& a, const RopeConfig& b) {
  if (a.linear != b.linear || bool(a.llama3) != bool(b.llama3)) return false;
  return !a.llama3 || (a.llama3->factor == b.llama3->factor &&
                       a.llama3->low_freq_factor == b.llama3->low_freq_factor &&
                       a.llama3->high_freq_factor == b.llama3->high_freq_factor &&
                       a.llama3->original_positions == b.llama3->original_positions);
}

// rope_parameters is the newer spelling of rope_theta and rope_scaling; a file that has both must
// mean the same by them.
void read_rope_json(ConfigReader& in, RopeConfig& rope) {
  const Json* parameters = in.object("rope_parameters");
  const Json* scaling = in.object("rope_scaling");
  if (parameters != nullptr && parameters->contains("rope_theta"))
    rope.theta = in.positive(*parameters, "rope_theta");
  else
    rope.theta = in.positive_or("rope_theta", rope.theta);

  RopeConfig other = rope;
  if (parameters != nullptr) read_rope_scaling(in, *parameters, "rope_parameters", rope);
  if (scaling != nullptr) read_rope_scaling(in, *scaling, "rope_scaling", other);
  if (!rope.linear && !rope.llama3)
    rope = other;
  else if (scaling != nullptr && !same_scaling(rope, other))
    in.fail("rope_parameters and rope_scaling say different things");
}

void read_rope_gguf(ConfigReader& in, RopeConfig& rope) {
  rope.theta = in.positive_or("rope.freq_base", rope.theta);
  const std::string kind = in.text("rope.scaling.type").value_or("none");
  if (kind == "linear")
    rope.linear = in.positive("rope.scaling.factor");
  else if (kind != "none")
    in.unsupported(
        fmt::format("rope.scaling.type '{}' is not supported; known are none, linear", kind));
}

void read_sizes_gguf(ConfigReader& in, DenseConfig& c) {
  c.n_layers = in.count("block_count");
  c.dim = in.count("embedding_length");
  c.hidden_dim = in.count("feed_forward_length");
  c.context_length = in.count("context_length");
  c.n_heads = in.count("attention.head_count");
  c.n_kv_heads = in.count_or("attention.head_count_kv", c.n_heads);
  if (c.dim % c.n_heads != 0 && !in.has("attention.key_length"))
    in.fail("embedding_length is no multiple of attention.head_count, and there is no key_length");
  c.head_dim = in.count_or("attention.key_length", std::max(c.dim / c.n_heads, 1));
  if (in.count_or("attention.value_length", c.head_dim) != c.head_dim)
    in.unsupported("keys and values of different width are not supported");
  if (in.count_or("rope.dimension_count", c.head_dim) != c.head_dim)
    in.unsupported("rope.dimension_count differs from the width of a head, which is not supported");
  c.norm_eps = static_cast<float>(in.positive("attention.layer_norm_rms_epsilon"));
  c.tied = true;  // output.weight, where it is there, unties
}

void read_sizes_json(ConfigReader& in, DenseConfig& c, bool tied) {
  c.n_layers = in.count("num_hidden_layers");
  c.dim = in.count("hidden_size");
  c.hidden_dim = in.count("intermediate_size");
  c.context_length = in.count("max_position_embeddings");
  c.vocab_size = in.count("vocab_size");
  c.n_heads = in.count("num_attention_heads");
  c.n_kv_heads = in.count("num_key_value_heads");
  if (c.dim % c.n_heads != 0 && !in.has("head_dim"))
    in.fail("hidden_size is no multiple of num_attention_heads, and there is no head_dim");
  c.head_dim = in.count_or("head_dim", std::max(c.dim / c.n_heads, 1));
  c.norm_eps = static_cast<float>(in.positive("rms_norm_eps"));
  c.tied = in.flag("tie_word_embeddings", tied);
}

constexpr int kMost = 1 << 24;  // of any size: beyond what any known model has

// Products of sizes stay far inside 64 bits, and every row inside 32.
void check_sizes(ConfigReader& in, const DenseConfig& c, int64_t n_tensors) {
  if (c.n_heads % c.n_kv_heads != 0)
    in.fail(fmt::format("{} heads cannot share {} key heads evenly", c.n_heads, c.n_kv_heads));
  if (c.head_dim % 2 != 0)
    in.fail(fmt::format("heads of width {} cannot be rotated: wanted an even one", c.head_dim));
  for (const auto& [value, name] : {std::pair{c.dim, "width"},
                                    {c.hidden_dim, "feed-forward width"},
                                    {c.n_layers, "layer count"},
                                    {c.vocab_size, "vocabulary"},
                                    {c.context_length, "context length"},
                                    {c.n_heads, "head count"},
                                    {c.head_dim, "head width"}})
    if (value > kMost) in.fail(fmt::format("a {} of {} is beyond any known model", name, value));
  if (static_cast<int64_t>(c.n_heads) * c.head_dim > kMost)
    in.fail("heads times head width is beyond any known model");
  // What is told of each layer below grows with their number, so a claim must not be believed.
  if (c.n_layers > n_tensors)
    in.fail(
        fmt::format("{} layers are claimed where the file has {} tensors", c.n_layers, n_tensors));
}

}  // namespace

void read_sizes(ConfigReader& in, DenseConfig& config, bool tied) {
  if (in.is_gguf())
    read_sizes_gguf(in, config);
  else
    read_sizes_json(in, config, tied);
  // Families go through the layers.
  if (config.n_layers <= kMost) return;
  in.fail(fmt::format("a layer count of {} is beyond any known model", config.n_layers));
  config.n_layers = 1;
}

void read_rope(ConfigReader& in, DenseConfig& config) {
  if (in.is_gguf())
    read_rope_gguf(in, config.rope);
  else
    read_rope_json(in, config.rope);
}

void read_rope_scaling(ConfigReader& in, const Json& object, const char* name, RopeConfig& rope) {
  const std::string kind = rope_kind(in, object, name);
  if (const auto it = object.find("partial_rotary_factor"); it != object.end() && *it != 1.0)
    in.unsupported(fmt::format("{}: a partial_rotary_factor is not supported", name));
  if (kind == "linear") {
    rope.linear = in.positive(object, "factor");
  } else if (kind == "llama3") {
    rope.llama3 = Llama3Scaling{
        .factor = in.positive(object, "factor"),
        .low_freq_factor = in.positive(object, "low_freq_factor"),
        .high_freq_factor = in.positive(object, "high_freq_factor"),
        .original_positions = in.positive(object, "original_max_position_embeddings")};
    if (rope.llama3->high_freq_factor <= rope.llama3->low_freq_factor)
      in.fail(fmt::format("{}: high_freq_factor must be above low_freq_factor", name));
  } else if (kind != "default") {
    in.unsupported(fmt::format("{} of type {} is not supported; known are default, linear, llama3",
                               name, quoted_name(kind)));
  }
}

std::optional<std::vector<bool>> read_layer_types(ConfigReader& in, int n_layers) {
  const Json* types = in.array("layer_types");
  if (types == nullptr) return std::nullopt;
  if (std::ssize(*types) != n_layers) {
    in.fail(fmt::format("layer_types names {} layers where num_hidden_layers is {}", types->size(),
                        n_layers));
    return std::nullopt;
  }
  std::vector<bool> slides;
  slides.reserve(types->size());
  for (const Json& type : *types) {
    slides.push_back(type == "sliding_attention");
    if (type != "sliding_attention" && type != "full_attention")
      in.unsupported(
          fmt::format("layer_types names {}; known are \"full_attention\", \"sliding_attention\"",
                      type.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
  return slides;
}

void read_switched_window(ConfigReader& in, DenseConfig& config) {
  if (in.is_gguf()) return;  // none is written there
  const auto listed = read_layer_types(in, config.n_layers);
  if (!in.flag("use_sliding_window", false)) {
    if (listed && std::find(listed->begin(), listed->end(), true) != listed->end())
      in.fail("layer_types names sliding layers, but use_sliding_window is not true");
    return;
  }
  config.window = in.count("sliding_window");
  if (listed) {
    config.slides = *listed;
    return;
  }
  const int n_full = in.count("max_window_layers", 0);
  for (int layer = 0; layer < config.n_layers; ++layer) config.slides.push_back(layer >= n_full);
}

Bias bias_by_flag(ConfigReader& in, const char* flag) {
  if (in.is_gguf()) return Bias::IfThere;
  return in.flag(flag, false) ? Bias::Required : Bias::None;
}

Result<std::string> family_of(const Checkpoint& checkpoint) {
  if (checkpoint.metadata() != nullptr) {
    const auto name = checkpoint.metadata()->text("general.architecture");
    if (!name)
      return Error{ErrorCode::BadFormat,
                   checkpoint.path().string() + ": wants a key general.architecture, found none"};
    return std::string(*name);
  }
  const std::string place = checkpoint.path().string() + "/config.json";
  const Json json = parse_json<Json>(checkpoint.config_json());
  if (!json.is_object()) return Error{ErrorCode::BadFormat, place + ": is not a JSON object"};
  const auto it = json.find("model_type");
  if (it == json.end() || !it->is_string())
    return Error{ErrorCode::BadFormat, place + ": wants a text model_type, found none"};
  return it->get<std::string>();
}

Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint, const DenseFamily& family) {
  ConfigReader in(checkpoint, family.nested_config);
  if (in.error()) return *in.error();
  DenseConfig config;
  config.family = family.name;
  family.read(in, config);
  in.refuse_the_rest();
  if (!in.error()) check_sizes(in, config, std::ssize(checkpoint.tensors()));
  config.window = std::min(config.window, config.context_length);
  if (config.window == 0) config.slides.clear();
  if (in.error()) return *in.error();
  return config;
}

}  // namespace paceline
