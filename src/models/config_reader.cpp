#include "models/config_reader.h"

#include <array>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

std::string shown(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Settings by which models differ in what they compute, with the value that changes nothing; null
// changes nothing anywhere.
struct Setting {
  const char* name;
  double usual;
};
constexpr double kNone = -1;  // every number changes something
constexpr std::array kJsonSettings = {
    Setting{"attention_bias", 0},
    Setting{"attention_multiplier", kNone},
    Setting{"attn_logit_softcapping", kNone},
    Setting{"clip_qkv", kNone},
    Setting{"embedding_multiplier", 1},
    Setting{"final_logit_softcapping", kNone},
    Setting{"logit_scale", 1},
    Setting{"logits_scaling", 1},
    Setting{"mlp_bias", 0},
    Setting{"num_experts", 0},
    Setting{"num_local_experts", 0},
    Setting{"partial_rotary_factor", 1},
    Setting{"qk_layernorm", 0},
    Setting{"query_pre_attn_scalar", kNone},
    Setting{"residual_multiplier", 1},
    Setting{"use_bidirectional_attention", 0},
    Setting{"use_qk_norm", 0},
    Setting{"use_sliding_window", 0},
};
constexpr std::array kGgufSettings = {
    Setting{"attention.causal", 1},
    Setting{"attention.clamp_kqv", 0},
    Setting{"attention.scale", kNone},
    Setting{"attention.sliding_window", 0},
    Setting{"attn_logit_softcapping", 0},
    Setting{"embedding_scale", 1},
    Setting{"expert_count", 0},
    Setting{"final_logit_softcapping", 0},
    Setting{"logit_scale", 1},
    Setting{"residual_scale", 1},
    Setting{"rope.scaling.attn_factor", 1},
};

}  // namespace

ConfigReader::ConfigReader(const Checkpoint& checkpoint, const char* nested)
    : place_(checkpoint.path().string()), metadata_(checkpoint.metadata()) {
  if (metadata_ != nullptr) {
    architecture_ = metadata_->text("general.architecture").value_or("");
    return;
  }
  place_ += "/config.json";
  json_ = parse_json<Json>(checkpoint.config_json());
  if (!json_.is_object()) {
    fail("is not a JSON object");
    return;
  }
  if (nested == nullptr || !json_.contains(nested)) return;
  Json inner = json_[nested];
  if (!inner.is_object()) {
    fail(fmt::format("{} is not an object", nested));
    return;
  }
  // Said once for all parts of the model.
  if (json_.contains("tie_word_embeddings") && !inner.contains("tie_word_embeddings"))
    inner["tie_word_embeddings"] = json_["tie_word_embeddings"];
  json_ = std::move(inner);
  place_ += fmt::format(", {}", nested);
}

void ConfigReader::fail(const std::string& what, ErrorCode code) {
  if (!error_) error_ = Error{code, place_ + ": " + what};
}

bool ConfigReader::has(const char* name) const {
  asked_.insert(name);
  if (is_gguf()) return metadata_->has(key(name));
  const auto it = json_.find(name);
  return it != json_.end() && !it->is_null();
}

bool ConfigReader::is_null(const char* name) const {
  const auto it = json_.find(name);
  return !is_gguf() && it != json_.end() && it->is_null();
}

int ConfigReader::count(const char* name, int least) {
  std::optional<int64_t> value;
  if (!has(name)) {
    fail(fmt::format("wants a whole number {}, found none", key(name)));
    return 1;
  }
  if (is_gguf()) {
    value = metadata_->integer(key(name));
  } else if (const Json& found = json_[name]; found.is_number_integer()) {
    value = found.is_number_unsigned() && found.get<uint64_t>() > INT64_MAX ? INT64_MAX
                                                                            : found.get<int64_t>();
  }
  if (!value) {
    fail(fmt::format("wants a whole number {}, found something else", key(name)));
    return 1;
  }
  if (*value < least || *value > std::numeric_limits<int>::max()) {
    fail(fmt::format("{} is {}, wanted {} to 2147483647", key(name), *value, least));
    return 1;
  }
  return static_cast<int>(*value);
}

double ConfigReader::checked_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return value;
  fail(fmt::format("{} is {}, wanted a number above 0", key(name), value));
  return 1;
}

double ConfigReader::positive(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) {
    fail(fmt::format("wants a number {}", name));
    return 1;
  }
  return checked_positive(name, it->get<double>());
}

double ConfigReader::positive(const char* name) {
  asked_.insert(name);
  if (!is_gguf()) return positive(json_, name);
  const auto value = metadata_->number(key(name));
  if (!value) {
    fail(fmt::format("wants a number {}", key(name)));
    return 1;
  }
  return checked_positive(name, *value);
}

bool ConfigReader::flag(const char* name, bool other) {
  if (!has(name)) return other;
  if (is_gguf()) return metadata_->boolean(key(name)).value_or(other);
  const Json& value = json_[name];
  if (value.is_boolean()) return value.get<bool>();
  fail(fmt::format("{} wants true or false", name));
  return other;
}

std::optional<std::string> ConfigReader::text(const char* name) {
  if (!has(name)) return std::nullopt;
  if (is_gguf()) {
    if (const auto value = metadata_->text(key(name))) return std::string(*value);
  } else if (json_[name].is_string()) {
    return json_[name].get<std::string>();
  }
  fail(fmt::format("{} wants a text", key(name)));
  return std::nullopt;
}

const Json* ConfigReader::object(const char* name) {
  if (!has(name)) return nullptr;
  const Json& value = json_[name];
  if (value.is_object()) return &value;
  fail(fmt::format("{} is not an object", name));
  return nullptr;
}

const Json* ConfigReader::array(const char* name) {
  if (!has(name)) return nullptr;
  const Json& value = json_[name];
  if (value.is_array()) return &value;
  fail(fmt::format("{} is not a list", name));
  return nullptr;
}

std::optional<std::vector<int64_t>> ConfigReader::integers(const char* name) {
  if (!has(name)) return std::nullopt;
  return metadata_->integers(key(name));
}

void ConfigReader::assume(const char* name, Json value) {
  if (!is_gguf() && json_.is_object() && !has(name)) json_[name] = std::move(value);
}

void ConfigReader::only(const char* name, std::string_view wanted) {
  if (!has(name)) return;
  const Json& value = json_[name];
  if (value.is_string() && value.get_ref<const std::string&>() == wanted) return;
  unsupported(fmt::format("{} {} is not supported; known is \"{}\"", name, shown(value), wanted));
}

void ConfigReader::refuse_the_rest() {
  if (is_gguf()) {
    for (const Setting& setting : kGgufSettings) {
      if (asked_.count(setting.name) > 0 || !metadata_->has(key(setting.name))) continue;
      const auto integer = metadata_->integer(key(setting.name));
      const auto number = integer ? static_cast<double>(*integer)
                                  : metadata_->number(key(setting.name)).value_or(kNone);
      if (number != setting.usual)
        unsupported(fmt::format("{} is {}, which is not supported in this family",
                                key(setting.name), number));
    }
    return;
  }
  for (const Setting& setting : kJsonSettings) {
    const auto it = json_.find(setting.name);
    if (asked_.count(setting.name) > 0 || it == json_.end() || it->is_null()) continue;
    const double number = it->is_number()    ? it->get<double>()
                          : it->is_boolean() ? (it->get<bool>() ? 1.0 : 0.0)
                                             : kNone;
    if (number == kNone || number != setting.usual)
      unsupported(
          fmt::format("{} is {}, which is not supported in this family", setting.name, shown(*it)));
  }
}

}  // namespace paceline
