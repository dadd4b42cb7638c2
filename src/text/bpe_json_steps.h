// The steps of tokenizer.json around the model: normalizer, pre_tokenizer and decoder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/bpe_tokenizer.h"

namespace paceline {

struct BpeSteps {
  Normalizer normalizer;
  std::optional<BarSpaces> bar_spaces;
  std::vector<CutStep> cuts;
  bool byte_level = false;     // the vocabulary is written in the byte alphabet
  bool decodes_bytes = false;  // "<0x0A>" decodes to that byte; only where not byte_level
  int spaces_off_front = 0;
  std::string description;  // of what is done before merging
};

// Unsupported, naming it, for any step that is not implemented here.
Result<BpeSteps> read_bpe_steps(const nlohmann::json& normalizer,
                                const nlohmann::json& pre_tokenizer, const nlohmann::json& decoder);

// A member, or null where it is missing.
const nlohmann::json& json_member(const nlohmann::json& object, const char* key);
// A member that is true or false, `otherwise` where it is missing or anything else.
bool json_flag(const nlohmann::json& object, const char* key, bool otherwise = false);
// A text; empty for any other value.
std::string json_text(const nlohmann::json& value);

}  // namespace paceline
