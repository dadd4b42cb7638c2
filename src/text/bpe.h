// The byte-level BPE tokenizer, from the pieces of either file kind that holds one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "text/tokenizer.h"

namespace paceline {

// What GGUF holds under tokenizer.ggml.*; views need to live during the call only.
struct GgufVocab {
  std::span<const std::string_view> tokens;  // in the byte alphabet; special ones as written
  std::span<const std::string_view> merges;  // "left right", by falling priority
  // 1 normal, 2 unknown, 3 control (special), 4 user-defined (always cut from the text, but not
  // special), 5 unused
  std::span<const int32_t> token_types;
  std::string_view pre;  // tokenizer.ggml.pre, empty where the file has none
  std::optional<int64_t> bos, eos, eot;
  bool adds_bos = false;
};

// For tokenizer.ggml.model = "gpt2". Errors name the key at fault.
//
// Bytes that the vocabulary has no token for are dropped from a text, as the tokenizers library
// drops them; description() tells how many such bytes there are.
Result<std::unique_ptr<Tokenizer>> make_bpe(const GgufVocab& vocab);

// From the text of tokenizer.json, and of tokenizer_config.json where there is one (else empty):
// bos_token, eos_token and add_bos_token are read from it. Unsupported, naming it, for any step of
// the file that is not implemented here. Decoding never tidies blanks before punctuation.
Result<std::unique_ptr<Tokenizer>> make_bpe(std::string_view tokenizer_json,
                                            std::string_view tokenizer_config);

}  // namespace paceline
