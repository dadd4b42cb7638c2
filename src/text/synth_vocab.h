// A vocabulary of any size for models that are drawn, not trained: a token for every byte, three
// special ones, and pairs of pairs up to the size asked for. It encodes and decodes any text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace paceline {

struct SynthVocab {
  std::vector<std::string> tokens;   // tokenizer.ggml.tokens, in the byte alphabet
  std::vector<std::string> merges;   // tokenizer.ggml.merges, "left right"
  std::vector<int32_t> token_types;  // tokenizer.ggml.token_type
  std::string pre = "smollm";        // tokenizer.ggml.pre; tokenizer.ggml.model is "gpt2"
  int32_t bos = 1;                   // <|im_start|>; it is not added to texts
  int32_t eos = 2;                   // <|im_end|>
};

inline constexpr int kSynthVocabMinimum = 3 + 256;

// Ids 0 to 2 are <|endoftext|>, <|im_start|> and <|im_end|>, as in SmolLM2. BadUsage for a size
// below kSynthVocabMinimum or above 2^22.
Result<SynthVocab> synth_vocab(int size);

// The same as the two files that stand beside a safetensors checkpoint.
std::string synth_tokenizer_json(const SynthVocab& vocab);
std::string synth_tokenizer_config(const SynthVocab& vocab);

// The chat template that goes with it: <|im_start|>role, content<|im_end|>, a line each.
std::string synth_chat_template();

}  // namespace paceline
