#include "engine/logprobs.h"

#include "kernels/softmax.h"
#include "kernels/top_logits.h"

namespace paceline {

TokenLogprob log_probabilities(std::span<const float> logits, TokenId id, int n_top) {
  const double log_sum = log_sum_exp(logits);
  TokenLogprob result{.id = id, .logprob = logits[id] - log_sum, .top = {}};
  if (n_top == 0) return result;

  std::vector<std::pair<TokenId, float>> top;
  top_logits(logits, n_top, top);
  result.top.reserve(top.size());
  for (const auto& [token, logit] : top)
    result.top.emplace_back(token, static_cast<double>(logit) - log_sum);
  return result;
}

}  // namespace paceline
