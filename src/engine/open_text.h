// A checkpoint's tokenizer and chat template.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "io/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace paceline {

// Null when the checkpoint has none; Unsupported when it has one of a kind that is not known here.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const Checkpoint& checkpoint);

// The same without weights: from a tokenizer.json, from a folder that holds one (with
// tokenizer_config.json beside it where there is one), or from a .gguf file.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::filesystem::path& path);

// None when the checkpoint has none. Of several named templates the one called "default" counts.
Result<std::optional<ChatTemplate>> open_chat_template(const Checkpoint& checkpoint,
                                                       const Tokenizer& tokenizer);

}  // namespace paceline
