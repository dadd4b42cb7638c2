#include "spec/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

// NaN lies in no range.
Result<void> in_range(const char* field, double value, double lowest, double highest) {
  if (value >= lowest && value <= highest) return {};
  return Error{ErrorCode::BadUsage,
               fmt::format("{} should be {} to {}, but is {}", field, lowest, highest, value)};
}

Result<void> check_bias(const std::vector<LogitBias>& biases, int vocab_size) {
  std::vector<TokenId> ids;
  for (const LogitBias& bias : biases) {
    if (bias.id < 0 || bias.id >= vocab_size) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("logit_bias names the id {}, but the model's ids are 0 to {}",
                               bias.id, vocab_size - 1)};
    }
    const bool forbids = std::isinf(bias.value) && bias.value < 0;
    if (!forbids && !(std::fabs(bias.value) <= kMostBias)) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("logit_bias of id {} should be -inf or {} to {}, but is {}", bias.id,
                               -kMostBias, kMostBias, bias.value)};
    }
    ids.push_back(bias.id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return Error{ErrorCode::BadUsage,
               fmt::format("logit_bias names the id {} more than once; give it once", *twice)};
}

}  // namespace

Result<void> check_sampling(const SamplingOptions& options, int vocab_size) {
  const double t = options.temperature;
  if (t != 0 && !(t >= kLeastTemperature && t <= kMostTemperature)) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("temperature should be 0 (greedy) or {} to {}, but is {}",
                             kLeastTemperature, kMostTemperature, t)};
  }
  if (options.top_k < 0) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("top_k should be 0 (off) or more, but is {}", options.top_k)};
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("top_p should be above 0 and at most 1, but is {}", options.top_p)};
  }
  if (auto ok = in_range("min_p", options.min_p, 0, 1); !ok) return ok;
  if (auto ok = in_range("repetition_penalty", options.repetition_penalty, kLeastRepetitionPenalty,
                         kMostRepetitionPenalty);
      !ok) {
    return ok;
  }
  if (auto ok = in_range("presence_penalty", options.presence_penalty, -kMostPenalty, kMostPenalty);
      !ok) {
    return ok;
  }
  if (auto ok =
          in_range("frequency_penalty", options.frequency_penalty, -kMostPenalty, kMostPenalty);
      !ok) {
    return ok;
  }
  return check_bias(options.logit_bias, vocab_size);
}

}  // namespace paceline
