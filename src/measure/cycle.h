// Short cycles: what greedy answers of small models may end in.
#pragma once

#include <span>

#include "base/types.h"

namespace paceline::measure {

inline constexpr int kLongestCycle = 16;  // tokens

// Where the tail begins that repeats a cycle of at most kLongestCycle tokens, with its first
// instance, at least three of them in all; ids.size() where there is none.
int cycle_start(std::span<const TokenId> ids);

// Whether such a tail is half of an answer or more, which has 16 tokens at least.
bool ends_in_cycle(std::span<const TokenId> ids);

}  // namespace paceline::measure
