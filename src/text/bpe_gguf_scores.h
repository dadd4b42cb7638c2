// The vocabularies of SentencePiece as GGUF files hold them: tokens with scores, and no merges.
#pragma once

#include "base/result.h"
#include "text/bpe.h"
#include "text/bpe_tokenizer.h"

namespace paceline {

// Fills in tokens, merges and how a text is prepared, for tokenizer.ggml.model = "llama". Which
// pair merges first is said by the score of what it becomes, and each way of putting a token
// together from two others is a merge; that gives what merging by looking up every pair's text
// gives.
// User-defined tokens are looked for in the normalized text, as SentencePiece does it.
Result<void> read_scored_vocab(const GgufVocab& vocab, const TokenIndex& by_text, BpeSpec& spec);

}  // namespace paceline
