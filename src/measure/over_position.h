// How many tokens a round yields, early and late in an answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/sequence.h"

namespace paceline::measure {

// Rounds that began at output positions [32 i, 32 (i + 1)), i being its index.
struct PositionBin {
  static constexpr int kWidth = 32;

  int64_t rounds = 0;
  int64_t tokens = 0;  // emitted by them
};

// Adds an answer's rounds to `bins`, which grow as needed. tokens: all of it, the prefill's token
// in front, which belongs to no round. A round is its drafts that stood and then a token of the
// trunk's own, which may be missing at the end of the answer.
void add_rounds(std::span<const EmittedToken> tokens, std::vector<PositionBin>& bins);

}  // namespace paceline::measure
