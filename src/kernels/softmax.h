// Softmax over a vocabulary, for log-probabilities.
#pragma once

#include <span>
#include <utility>

#include "base/types.h"

namespace paceline {

// log(sum(exp(row))): the maximum taken out; exp summed in sixteen lanes over spans of 1,024
// elements, spans added in ascending order (docs/numerics.md, rule 2). The same bits on every
// machine.
float log_sum_exp(std::span<const float> row);

// The share that the largest element, row[top], has of the softmax; finite. The same sum.
float top_probability(std::span<const float> row, int top);

// The shares of the elements that top_logits() gave, in their order.
void top_probabilities(std::span<const float> row, std::span<const std::pair<TokenId, float>> top,
                       std::span<float> shares);

}  // namespace paceline
