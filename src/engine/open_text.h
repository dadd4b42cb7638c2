// A checkpoint's tokenizer and chat template.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace paceline {

// Null when the checkpoint has none; Unsupported when it has one of a kind that is not known here.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const Checkpoint& checkpoint);

// None when the checkpoint has none. Of several named templates the one called "default" counts.
Result<std::optional<ChatTemplate>> open_chat_template(const Checkpoint& checkpoint,
                                                       const Tokenizer& tokenizer);

// Both without weights.
struct TextOnly {
  std::unique_ptr<Tokenizer> tokenizer;  // never null
  std::string template_source;           // empty when there is none
};
// From a tokenizer.json or a folder that holds one (tokenizer_config.json and chat_template.jinja
// beside it count), or from a .gguf file.
Result<TextOnly> open_text(const std::filesystem::path& path);

// None for an empty source.
Result<std::optional<ChatTemplate>> parse_chat_template(std::string_view source,
                                                        const Tokenizer& tokenizer);

}  // namespace paceline
