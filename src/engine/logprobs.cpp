#include "engine/logprobs.h"

#include <algorithm>

#include "kernels/softmax.h"

namespace paceline {

TokenLogprob log_probabilities(std::span<const float> logits, TokenId id, int n_top) {
  const double log_sum = log_sum_exp(logits);
  TokenLogprob result{.id = id, .logprob = logits[id] - log_sum, .top = {}};
  if (n_top == 0) return result;

  // Sorted all the time: few are asked for, and hardly any logit gets past the last of them.
  auto& top = result.top;
  top.reserve(n_top + 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit == logit)) continue;  // NaN is no candidate
    if (static_cast<int>(top.size()) == n_top && !(logit > top.back().second)) continue;
    const auto place = std::find_if(top.begin(), top.end(),
                                    [&](const auto& entry) { return logit > entry.second; });
    top.insert(place, {static_cast<TokenId>(i), logit});
    if (static_cast<int>(top.size()) > n_top) top.pop_back();
  }
  for (auto& entry : top) entry.second -= log_sum;
  return result;
}

}  // namespace paceline
