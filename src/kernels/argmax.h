// The token that greedy decoding takes.
#pragma once

#include <span>

namespace paceline {

// Index of the largest element, the lowest one on ties (-0 equals +0); NaNs are passed over.
// -1 when the maximum is not finite or there is none.
int argmax(std::span<const float> row);

}  // namespace paceline
