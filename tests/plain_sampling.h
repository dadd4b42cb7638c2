// Sampling by plain loops, whole sorts and no bounds: what the sampler must equal, token by token.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/reference.h"
#include "kernels/rope.h"
#include "kernels/sampling.h"
#include "spec/sampling_options.h"

namespace paceline {

// The logits that penalties and biases leave.
inline std::vector<float> plain_edits(const SamplingOptions& options, std::span<const float> logits,
                                      std::span<const TokenId> prompt,
                                      std::span<const TokenId> output) {
  std::vector<float> edited(logits.begin(), logits.end());
  const auto repetition = static_cast<float>(options.repetition_penalty);
  for (size_t id = 0; id < edited.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    const auto times = std::count(output.begin(), output.end(), token);
    const bool seen = times > 0 || std::count(prompt.begin(), prompt.end(), token) > 0;
    float& l = edited[id];
    if (seen && repetition != 1) l = l > 0 ? l / repetition : l * repetition;
    if (times > 0) {
      l -= static_cast<float>(options.frequency_penalty) * static_cast<float>(times);
      l -= static_cast<float>(options.presence_penalty);
    }
    for (const LogitBias& bias : options.logit_bias)
      if (bias.id == token) l += static_cast<float>(bias.value);
  }
  return edited;
}

// The ids that top-k, top-p and min-p leave, most likely first.
inline std::vector<TokenId> plain_survivors(const SamplingOptions& options,
                                            std::span<const float> logits, const RowScale& row) {
  std::vector<std::pair<float, TokenId>> order;
  for (size_t id = 0; id < logits.size(); ++id) {
    const float x = reference::scaled(logits[id], row);
    if (x >= std::numeric_limits<float>::lowest()) order.emplace_back(-x, id);
  }
  std::sort(order.begin(), order.end());
  const bool top_k = options.top_k > 0 && options.top_k < static_cast<int>(logits.size());
  if (top_k && order.size() > static_cast<size_t>(options.top_k)) order.resize(options.top_k);
  const auto top_p = static_cast<float>(options.top_p);
  if (top_p < 1) {
    float total = 0;
    if (top_k)
      for (const auto& entry : order) total += reference::exp(-entry.first);
    else
      total = reference::exp_sum(logits, row);
    float sum = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      sum += reference::exp(-order[i].first);
      if (!(sum >= top_p * total)) continue;
      order.resize(i + 1);
      break;
    }
  }
  std::vector<TokenId> ids;
  for (const auto& [minus_x, id] : order) {
    if (options.min_p > 0 && -minus_x < static_cast<float>(log_double(options.min_p))) continue;
    ids.push_back(id);
  }
  return ids;
}

inline TokenId plain_sample(const SamplingOptions& options, std::span<const float> logits,
                            std::span<const TokenId> prompt, std::span<const TokenId> output,
                            int position) {
  const auto edited = plain_edits(options, logits, prompt, output);
  const int likely = reference::argmax(edited);
  if (likely < 0 || options.temperature == 0) return likely;
  const RowScale row = {edited[likely], 1.0f / static_cast<float>(options.temperature)};
  const NoiseKey key = noise_key(options.seed, position);
  float best = -std::numeric_limits<float>::infinity();
  TokenId token = -1;
  for (const TokenId id : plain_survivors(options, edited, row)) {
    const float score = reference::scaled(edited[id], row) +
                        reference::gumbel(reference::noise_bits(key, static_cast<uint32_t>(id)));
    if (score > best || (score == best && id < token)) {
      best = score;
      token = id;
    }
  }
  return token;
}

}  // namespace paceline
