// How a token is chosen from a row of logits.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace paceline {

struct LogitBias {
  TokenId id = 0;
  double value = 0;  // added to the logit; -infinity forbids the token
};

// In the order in which they take effect.
struct SamplingOptions {
  double repetition_penalty = 1;  // tokens of prompt and output: logit > 0 ? logit / r : logit * r
  double frequency_penalty = 0;   // tokens of the output: subtracted once for each time they occur
  double presence_penalty = 0;    // the same: subtracted once
  std::vector<LogitBias> logit_bias = {};  // each id once
  double temperature = 0;                  // 0: the largest logit
  int top_k = 0;                           // keep so many of the most likely; 0: all
  double top_p = 1;  // of those, keep the most likely that have this probability together
  double min_p = 0;  // of those, keep what has this share of the largest probability
  uint64_t seed = 1;

  bool edits_logits() const {
    return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0 ||
           !logit_bias.empty();
  }
  bool is_greedy() const { return temperature == 0 && !edits_logits(); }
};

// The ranges: a repetition penalty and a temperature within these, whose reciprocals and products
// stay finite; penalties of at most 1,000 and biases of at most 1e30, but for -infinity.
inline constexpr double kLeastTemperature = 1e-6;
inline constexpr double kMostTemperature = 1e6;
inline constexpr double kLeastRepetitionPenalty = 1e-3;
inline constexpr double kMostRepetitionPenalty = 1e3;
inline constexpr double kMostPenalty = 1e3;
inline constexpr double kMostBias = 1e30;

// BadUsage naming the field, what is allowed and what was found.
Result<void> check_sampling(const SamplingOptions& options, int vocab_size);

}  // namespace paceline
