// Seeded sampling: the token that a row of logits chooses at a position, given the text before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "spec/accept.h"
#include "spec/logit_edits.h"
#include "spec/row_filter.h"
#include "spec/sampling_options.h"

namespace paceline {

// Penalties, bias, temperature, top-k, top-p, min-p, in this order; then the largest of
// x + noise among what remains, x = (logit - top) / temperature (kernels/sampling.h). A token
// depends on the logits, the options, its position and the tokens before it, on nothing else.
//
// A drafter that scores the vocabulary itself owns a Sampler of its own, made from the same
// options: it then draws its guesses with the noise that the trunk's token will be drawn with, and
// guesses right more often than with noise of its own or with its most likely token.
class Sampler {
 public:
  // The options have passed check_sampling.
  Sampler(const SamplingOptions& options, int vocab_size, const KernelTable& table);

  // A new text. capacity: tokens that prompt and output may have together.
  void begin(std::span<const TokenId> prompt, int capacity);
  // Tokens that joined the output.
  void commit(std::span<const TokenId> tokens) { edits_.add(tokens); }

  // The token for `position` behind the text so far and `drafts`; -1 when no logit is a finite
  // maximum. The row is changed on the way and put back. Allocates nothing.
  TokenId draw(std::span<float> logits, int position, std::span<const TokenId> drafts = {});

 private:
  TokenId draw_edited(std::span<const float> logits, int position);

  const KernelTable& table_;
  uint64_t seed_;
  float temperature_;
  LogitEdits edits_;
  RowFilter filter_;
  std::vector<float> maxima_;  // of each group of ids
};

// Accepts the drafts that a Sampler draws as well.
class SampledRule : public AcceptRule {
 public:
  SampledRule(const SamplingOptions& options, int vocab_size, const KernelTable& table)
      : sampler_(options, vocab_size, table) {}

  void begin(std::span<const TokenId> prompt, int capacity) override {
    sampler_.begin(prompt, capacity);
  }
  void commit(std::span<const TokenId> tokens) override { sampler_.commit(tokens); }

 private:
  TokenId choose(std::span<float> logits, int position, std::span<const TokenId> drafts) override {
    return sampler_.draw(logits, position, drafts);
  }

  Sampler sampler_;
};

}  // namespace paceline
