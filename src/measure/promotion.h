// Whether a new draft head is better than the one it would replace, beyond chance.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/statistics.h"

namespace paceline::measure {

// What one prompt took under one head.
struct PromptRounds {
  std::string id;
  std::string category;  // "" when there is none
  int64_t rounds = 0;
  int64_t tokens = 0;  // emitted by rounds
};

// Tokens per round over the totals of some prompts, under both heads.
struct HeadChange {
  std::string category;
  int prompts = 0;
  double before = 0;
  double after = 0;
  Interval change;  // of after - before
};

struct Promotion {
  bool promote = false;
  std::string reason;  // a sentence with the numbers that decided
  HeadChange all;
  std::vector<HeadChange> categories;  // by name
};

// Promoted when tokens per round rise over all prompts and fall in no category, beyond chance: the
// interval of the change lies above zero for all prompts, and for no category below it. Intervals
// are percentile bootstraps (Efron 1979) over pairs, the same prompt under both heads: 95 % for all
// prompts, drawn category by category, so that their mix stays; for n categories 1 - 0.05 / n each
// (Bonferroni), so that chance rejects one head in twenty, not one a category. Fewer than six
// prompts promote none: heads that are alike rise on all of five once in 32 times. Prompts without
// rounds count in neither. Repeats bit for bit with the seed.
//
// BadUsage where the two lists are not about the same prompts in the same order, or no prompt has
// rounds under both.
Result<Promotion> compare_heads(std::span<const PromptRounds> before,
                                std::span<const PromptRounds> after, uint64_t seed);

}  // namespace paceline::measure
