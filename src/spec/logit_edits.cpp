#include "spec/logit_edits.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

LogitEdits::LogitEdits(const SamplingOptions& options, int vocab_size)
    : repetition_(static_cast<float>(options.repetition_penalty)),
      frequency_(static_cast<float>(options.frequency_penalty)),
      presence_(static_cast<float>(options.presence_penalty)),
      penalises_(repetition_ != 1 || frequency_ != 0 || presence_ != 0) {
  for (const LogitBias& bias : options.logit_bias)
    bias_.push_back({bias.id, static_cast<float>(bias.value)});
  biased_before_.resize(bias_.size());
  if (penalises_) place_of_.assign(vocab_size, -1);
}

void LogitEdits::begin(std::span<const TokenId> prompt, int capacity) {
  for (const Seen& seen : seen_) place_of_[seen.id] = -1;
  seen_.clear();
  if (!penalises_) return;
  const size_t most = std::min<size_t>(capacity, place_of_.size());
  seen_.reserve(most);
  seen_before_.reserve(most);
  if (repetition_ == 1) return;  // nothing else looks at the prompt
  for (const TokenId token : prompt) entry(token).in_prompt = true;
}

LogitEdits::Seen& LogitEdits::entry(TokenId id) {
  int32_t& place = place_of_[id];
  if (place < 0) {
    place = static_cast<int32_t>(seen_.size());
    seen_.push_back({.id = id});
  }
  return seen_[place];
}

void LogitEdits::add(std::span<const TokenId> tokens) {
  if (!penalises_) return;
  for (const TokenId token : tokens) ++entry(token).times;
}

void LogitEdits::remove(std::span<const TokenId> tokens) {
  if (!penalises_) return;
  for (size_t i = tokens.size(); i-- > 0;) {
    Seen& seen = entry(tokens[i]);
    check(seen.times > 0, "only tokens that were added are removed");
    if (--seen.times > 0 || seen.in_prompt) continue;
    // It came with the tokens now being removed, the last ones, so it stands at the end.
    check(&seen == &seen_.back(), "tokens are removed in the reverse order");
    place_of_[seen.id] = -1;
    seen_.pop_back();
  }
}

float LogitEdits::penalised(float logit, const Seen& seen) const {
  if (repetition_ != 1) logit = logit > 0 ? logit / repetition_ : logit * repetition_;
  if (seen.times > 0) logit = (logit - frequency_ * static_cast<float>(seen.times)) - presence_;
  return logit;
}

void LogitEdits::apply(std::span<float> logits) {
  seen_before_.clear();
  for (const Seen& seen : seen_) {
    float& logit = logits[seen.id];
    seen_before_.push_back(logit);
    logit = penalised(logit, seen);
  }
  for (size_t i = 0; i < bias_.size(); ++i) {
    float& logit = logits[bias_[i].id];
    biased_before_[i] = logit;
    logit = logit + bias_[i].value;
  }
}

void LogitEdits::undo(std::span<float> logits) const {
  for (size_t i = bias_.size(); i-- > 0;) logits[bias_[i].id] = biased_before_[i];
  for (size_t i = seen_.size(); i-- > 0;) logits[seen_[i].id] = seen_before_[i];
}

}  // namespace paceline
