// The BPE tokenizers, byte-level and of characters with byte fallback (SentencePiece), from the
// pieces of either file kind that holds one.
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
  // "gpt2": byte-level, with merges and pre. "llama": of characters, with scores; the pair whose
  // whole has the highest score merges first.
  std::string_view model = "gpt2";
  std::span<const std::string_view> tokens;  // gpt2: in the byte alphabet; special ones as written
  std::span<const std::string_view> merges = {};  // "left right", by falling priority
  std::span<const double> scores = {};            // one a token
  // 1 normal, 2 unknown, 3 control (special), 4 user-defined (always cut from the text, but not
  // special), 5 unused, 6 byte ("<0x0A>", llama only)
  std::span<const int32_t> token_types;
  std::string_view pre = {};  // tokenizer.ggml.pre, empty where the file has none
  std::optional<int64_t> bos, eos, eot;
  bool adds_bos = false;
  bool adds_space = true;  // llama only: a space in front of a text and behind special tokens
};

// Errors name the key at fault. Unsupported for any other tokenizer.ggml.model.
//
// Bytes that a byte-level vocabulary has no token for are dropped from a text, as the tokenizers
// library drops them; description() tells how many such bytes there are.
Result<std::unique_ptr<Tokenizer>> make_bpe(const GgufVocab& vocab);

// From the text of tokenizer.json, and of tokenizer_config.json where there is one (else empty):
// bos_token, eos_token and add_bos_token are read from it. Unsupported, naming it, for any step of
// the file that is not implemented here. Decoding never tidies blanks before punctuation.
Result<std::unique_ptr<Tokenizer>> make_bpe(std::string_view tokenizer_json,
                                            std::string_view tokenizer_config);

}  // namespace paceline
