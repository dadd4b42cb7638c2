#include "models/dense_config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "fmt/format.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

// A source of numbers that remembers the first thing that was wrong with it, so that reading can be
// a list of assignments.
class Reader {
 public:
  Reader(const Checkpoint& checkpoint, const std::string& family)
      : place_(checkpoint.path().string()), metadata_(checkpoint.metadata()) {
    if (metadata_ != nullptr) {
      prefix_ = family + ".";
      return;
    }
    place_ += "/config.json";
    json_ = Json::parse(checkpoint.config_json(), nullptr, /*allow_exceptions=*/false);
    if (!json_.is_object()) fail("is not a JSON object");
  }

  bool is_gguf() const { return metadata_ != nullptr; }
  const Json& json() const { return json_; }
  const Metadata& metadata() const { return *metadata_; }
  std::string key(const char* name) const { return prefix_ + name; }

  void fail(const std::string& what, ErrorCode code = ErrorCode::BadFormat) {
    if (!error_) error_ = Error{code, place_ + ": " + what};
  }
  const std::optional<Error>& error() const { return error_; }

  bool has(const char* name) const {
    if (is_gguf()) return metadata_->has(key(name));
    const auto it = json_.find(name);
    return it != json_.end() && !it->is_null();
  }

  // A whole number from 1 to 2^31 - 1.
  int count(const char* name) {
    std::optional<int64_t> value;
    if (is_gguf()) {
      value = metadata_->integer(key(name));
    } else if (const auto it = json_.find(name); it != json_.end() && it->is_number_integer()) {
      value = it->is_number_unsigned() && it->get<uint64_t>() > INT64_MAX ? INT64_MAX
                                                                          : it->get<int64_t>();
    }
    if (!value) {
      fail(fmt::format("wants a whole number {}, found {}", key(name),
                       has(name) ? "something else" : "none"));
      return 1;
    }
    if (*value < 1 || *value > std::numeric_limits<int>::max()) {
      fail(fmt::format("{} is {}, wanted 1 to 2147483647", key(name), *value));
      return 1;
    }
    return static_cast<int>(*value);
  }
  int count_or(const char* name, int other) { return has(name) ? count(name) : other; }

  // A finite number above zero.
  double positive(const Json& object, const char* name) {
    const auto it = object.find(name);
    if (it == object.end() || !it->is_number()) {
      fail(fmt::format("wants a number {}", name));
      return 1;
    }
    return checked_positive(name, it->get<double>());
  }
  double positive(const char* name) {
    if (!is_gguf()) return positive(json_, name);
    const auto value = metadata_->number(key(name));
    if (!value) {
      fail(fmt::format("wants a number {}", key(name)));
      return 1;
    }
    return checked_positive(name, *value);
  }

  bool flag(const char* name, bool other) {
    const auto it = json_.find(name);
    if (it == json_.end() || it->is_null()) return other;
    if (!it->is_boolean()) {
      fail(fmt::format("{} wants true or false", name));
      return other;
    }
    return it->get<bool>();
  }

 private:
  double checked_positive(const char* name, double value) {
    if (std::isfinite(value) && value > 0) return value;
    fail(fmt::format("{} is {}, wanted a number above 0", key(name), value));
    return 1;
  }

  std::string place_;
  std::string prefix_;
  const Metadata* metadata_;
  Json json_;
  std::optional<Error> error_;
};

// The kind of scaling that an object names: "rope_type", or "type" in older files.
std::string rope_kind(Reader& in, const Json& object, const char* name) {
  for (const char* spelling : {"rope_type", "type"}) {
    const auto it = object.find(spelling);
    if (it != object.end() && it->is_string()) return it->get<std::string>();
  }
  in.fail(fmt::format("{} names no rope_type", name));
  return "default";
}

void read_rope_scaling(Reader& in, const Json& object, const char* name, DenseConfig& config) {
  const std::string kind = rope_kind(in, object, name);
  if (kind == "default") return;
  if (kind == "linear") {
    config.rope_linear = in.positive(object, "factor");
  } else if (kind == "llama3") {
    config.rope_llama3 = Llama3Scaling{
        .factor = in.positive(object, "factor"),
        .low_freq_factor = in.positive(object, "low_freq_factor"),
        .high_freq_factor = in.positive(object, "high_freq_factor"),
        .original_positions = in.positive(object, "original_max_position_embeddings")};
    if (config.rope_llama3->high_freq_factor <= config.rope_llama3->low_freq_factor)
      in.fail(fmt::format("{}: high_freq_factor must be above low_freq_factor", name));
  } else {
    in.fail(fmt::format("{} of type '{}' is not supported; known are default, linear, llama3", name,
                        kind),
            ErrorCode::Unsupported);
  }
}

// rope_parameters is the newer spelling of rope_theta and rope_scaling; a file that has both must
// mean the same by them.
void read_rope_json(Reader& in, DenseConfig& config) {
  const Json& json = in.json();
  const auto object = [&](const char* name) -> const Json* {
    const auto it = json.find(name);
    if (it == json.end() || it->is_null()) return nullptr;
    if (it->is_object()) return &*it;
    in.fail(fmt::format("{} is not an object", name));
    return nullptr;
  };
  const Json* parameters = object("rope_parameters");
  const Json* scaling = object("rope_scaling");
  if (parameters != nullptr && parameters->contains("rope_theta"))
    config.rope_theta = in.positive(*parameters, "rope_theta");
  else if (in.has("rope_theta"))
    config.rope_theta = in.positive("rope_theta");

  DenseConfig other = config;
  if (parameters != nullptr) read_rope_scaling(in, *parameters, "rope_parameters", config);
  if (scaling != nullptr) read_rope_scaling(in, *scaling, "rope_scaling", other);
  const auto same = [](const DenseConfig& a, const DenseConfig& b) {
    if (a.rope_linear != b.rope_linear || bool(a.rope_llama3) != bool(b.rope_llama3)) return false;
    return !a.rope_llama3 ||
           (a.rope_llama3->factor == b.rope_llama3->factor &&
            a.rope_llama3->low_freq_factor == b.rope_llama3->low_freq_factor &&
            a.rope_llama3->high_freq_factor == b.rope_llama3->high_freq_factor &&
            a.rope_llama3->original_positions == b.rope_llama3->original_positions);
  };
  const bool parameters_scale = config.rope_linear || config.rope_llama3;
  if (!parameters_scale) {
    config.rope_linear = other.rope_linear;
    config.rope_llama3 = other.rope_llama3;
  } else if (scaling != nullptr && !same(config, other)) {
    in.fail("rope_parameters and rope_scaling say different things");
  }
}

void read_rope_gguf(Reader& in, DenseConfig& config) {
  if (in.has("rope.freq_base")) config.rope_theta = in.positive("rope.freq_base");
  const auto kind = in.metadata().text(in.key("rope.scaling.type"));
  if (!kind || *kind == "none") return;
  if (*kind == "linear")
    config.rope_linear = in.positive("rope.scaling.factor");
  else
    in.fail(fmt::format("rope.scaling.type '{}' is not supported; known are none, linear", *kind),
            ErrorCode::Unsupported);
}

DenseConfig read_gguf(Reader& in) {
  DenseConfig c;
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
    in.fail("keys and values of different width are not supported", ErrorCode::Unsupported);
  if (in.count_or("rope.dimension_count", c.head_dim) != c.head_dim)
    in.fail("rope.dimension_count differs from the width of a head, which is not supported",
            ErrorCode::Unsupported);
  c.norm_eps = static_cast<float>(in.positive("attention.layer_norm_rms_epsilon"));
  c.tied = true;  // output.weight, where it is there, unties
  read_rope_gguf(in, c);
  return c;
}

DenseConfig read_json(Reader& in) {
  DenseConfig c;
  c.n_layers = in.count("num_hidden_layers");
  c.dim = in.count("hidden_size");
  c.hidden_dim = in.count("intermediate_size");
  c.context_length = in.count("max_position_embeddings");
  c.vocab_size = in.count("vocab_size");
  c.n_heads = in.count("num_attention_heads");
  c.n_kv_heads = in.count_or("num_key_value_heads", c.n_heads);
  if (c.dim % c.n_heads != 0 && !in.has("head_dim"))
    in.fail("hidden_size is no multiple of num_attention_heads, and there is no head_dim");
  c.head_dim = in.count_or("head_dim", std::max(c.dim / c.n_heads, 1));
  c.norm_eps = static_cast<float>(in.positive("rms_norm_eps"));
  c.tied = in.flag("tie_word_embeddings", false);
  if (in.has("hidden_act") && in.json()["hidden_act"] != "silu")
    in.fail("hidden_act " +
                in.json()["hidden_act"].dump(-1, ' ', true, Json::error_handler_t::replace) +
                " is not supported; known is \"silu\"",
            ErrorCode::Unsupported);
  read_rope_json(in, c);
  return c;
}

}  // namespace

Result<std::string> family_of(const Checkpoint& checkpoint) {
  if (checkpoint.metadata() != nullptr) {
    const auto name = checkpoint.metadata()->text("general.architecture");
    if (!name)
      return Error{ErrorCode::BadFormat,
                   checkpoint.path().string() + ": wants a key general.architecture, found none"};
    return std::string(*name);
  }
  const std::string place = checkpoint.path().string() + "/config.json";
  const Json json = Json::parse(checkpoint.config_json(), nullptr, false);
  if (!json.is_object()) return Error{ErrorCode::BadFormat, place + ": is not a JSON object"};
  const auto it = json.find("model_type");
  if (it == json.end() || !it->is_string())
    return Error{ErrorCode::BadFormat, place + ": wants a text model_type, found none"};
  return it->get<std::string>();
}

Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint, const std::string& family) {
  Reader in(checkpoint, family);
  if (in.error()) return *in.error();
  DenseConfig c = in.is_gguf() ? read_gguf(in) : read_json(in);
  if (!in.error()) {
    if (c.n_heads % c.n_kv_heads != 0)
      in.fail(fmt::format("{} heads cannot share {} key heads evenly", c.n_heads, c.n_kv_heads));
    if (c.head_dim % 2 != 0)
      in.fail(fmt::format("heads of width {} cannot be rotated: wanted an even one", c.head_dim));
    // Products of sizes stay far inside 64 bits, and every row inside 32.
    constexpr int kMost = 1 << 24;
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
    const auto n_tensors = static_cast<int64_t>(checkpoint.tensors().size());
    if (c.n_layers > n_tensors)
      in.fail(fmt::format("{} layers are claimed where the file has {} tensors", c.n_layers,
                          n_tensors));
  }
  if (in.error()) return *in.error();
  return c;
}

}  // namespace paceline
