#include "engine/end_ids.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/json_parse.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

Result<void> append_id(const Json& value, const std::string& name, std::vector<int64_t>& ids) {
  if (!value.is_number_integer()) {
    return Error{
        ErrorCode::BadFormat,
        name + ": eos_token_id should be an id or a list of ids, but holds a " + value.type_name()};
  }
  ids.push_back(value.get<int64_t>());
  return {};
}

}  // namespace

Result<void> append_end_ids(const std::string& json_text, const std::string& name,
                            std::vector<int64_t>& ids) {
  if (json_text.empty()) return {};
  const Json json = parse_json<Json>(json_text);
  if (!json.is_object()) return Error{ErrorCode::BadFormat, name + " is not a JSON object"};
  const auto found = json.find("eos_token_id");
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_array()) return append_id(*found, name, ids);
  for (const Json& value : *found) {
    if (auto appended = append_id(value, name, ids); !appended) return appended.error();
  }
  return {};
}

Result<std::vector<TokenId>> read_end_ids(const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                                          int vocab_size) {
  std::vector<int64_t> ids;
  const auto& folder = checkpoint.path();
  if (auto read = append_end_ids(checkpoint.generation_config_json(),
                                 (folder / "generation_config.json").string(), ids);
      !read) {
    return read.error();
  }
  if (auto read = append_end_ids(checkpoint.config_json(), (folder / "config.json").string(), ids);
      !read) {
    return read.error();
  }
  if (const Metadata* metadata = checkpoint.metadata(); metadata != nullptr) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"}) {
      if (const auto id = metadata->integer(key)) ids.push_back(*id);
    }
  }
  if (tokenizer != nullptr) {
    ids.insert(ids.end(), tokenizer->end_ids().begin(), tokenizer->end_ids().end());
  }

  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<TokenId> result;
  for (const int64_t id : ids) {
    if (id >= 0 && id < vocab_size) result.push_back(static_cast<TokenId>(id));
  }
  return result;
}

}  // namespace paceline
