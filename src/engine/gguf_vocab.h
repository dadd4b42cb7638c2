// The vocabulary in a GGUF file's metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "text/bpe.h"

namespace paceline {

// Owns the lists that a GgufVocab looks at; the texts belong to the checkpoint.
struct GgufLists {
  std::vector<std::string_view> tokens, merges;
  std::vector<double> scores;
  std::vector<int32_t> token_types;
  GgufVocab settings;  // without lists

  GgufVocab vocab() const;
};

// None where the file has no tokenizer; BadFormat, naming the key, where a list that it needs is
// missing.
Result<std::optional<GgufLists>> read_gguf_vocab(const Metadata& metadata);

}  // namespace paceline
