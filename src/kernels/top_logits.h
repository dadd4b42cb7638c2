// The most likely tokens of a row of logits.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/types.h"

namespace paceline {

// Puts the n largest logits into `top`, fewer where the row is shorter, descending, of equals the
// lowest id first; NaNs are passed over. For small n: a list that is kept sorted.
void top_logits(std::span<const float> row, int n, std::vector<std::pair<TokenId, float>>& top);

}  // namespace paceline
