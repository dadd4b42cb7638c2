// Log-probabilities of emitted tokens.
#pragma once

#include <span>

#include "engine/engine.h"

namespace paceline {

// Natural logarithms of the softmax of raw logits: of `id`, and of the n_top most likely tokens,
// descending, ties by id.
TokenLogprob log_probabilities(std::span<const float> logits, TokenId id, int n_top);

}  // namespace paceline
