// The vocabulary of a GGUF file as the files of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/bpe.h"

namespace paceline {

struct TokenizerFiles {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string special_tokens_map_json;
};

// What GGUF says of a tokenizer beside its vocabulary.
struct TokenizerSettings {
  std::optional<int64_t> pad;
  std::string_view chat_template;  // empty: none
  int64_t context_length = 0;
};

// Files that make_bpe, and the tokenizers library, read as the same tokenizer: the same ids for any
// text, but for U+2581 beside spaces (docs/tokenizers.md) and where two merges of one score
// overlap: tokenizer.json has them in an order. Errors as make_bpe has them; Unsupported too for
// user-defined tokens in a vocabulary that puts a space in front of texts, since tokenizer.json
// would put one behind those tokens as well.
Result<TokenizerFiles> tokenizer_files(const GgufVocab& vocab, const TokenizerSettings& settings);

}  // namespace paceline
