// The tokens that end a text.
#pragma once

#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "text/tokenizer.h"

namespace paceline {

// Every id that some file of the checkpoint calls an end: eos_token_id of generation_config.json
// and config.json (a number or a list), tokenizer.ggml.{eos,eot,eom}_token_id of a GGUF file, and
// the tokenizer's own (null: none). Ascending, each once; ids outside the vocabulary, which can
// never be chosen, are left out. BadFormat, naming file and key, for anything else than ids.
Result<std::vector<TokenId>> read_end_ids(const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                                          int vocab_size);

// The part that reads one JSON file: appends the ids under eos_token_id. `name` is for errors.
Result<void> append_end_ids(const std::string& json_text, const std::string& name,
                            std::vector<int64_t>& ids);

}  // namespace paceline
