// Penalties and biases: what they change of a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "spec/sampling_options.h"

namespace paceline {

// Knows the tokens of a text and how often each occurred in the output. Changes a row in place,
// where one of these tokens or a bias asks for it, and puts it back: a few thousand places at most
// instead of a copy of the row. In float32, for each token that was seen:
//   l = l > 0 ? l / repetition : l * repetition
//   l = (l - frequency * times in the output) - presence     where it is in the output
// and then, for each biased one, l = l + bias.
class LogitEdits {
 public:
  LogitEdits(const SamplingOptions& options, int vocab_size);

  bool any() const { return penalises_ || !bias_.empty(); }

  // Takes the memory for a text of `capacity` tokens.
  void begin(std::span<const TokenId> prompt, int capacity);
  // Tokens that join the output, and those that leave it again, the last ones added.
  void add(std::span<const TokenId> tokens);
  void remove(std::span<const TokenId> tokens);

  void apply(std::span<float> logits);
  // After apply, on the same row.
  void undo(std::span<float> logits) const;

 private:
  struct Seen {
    TokenId id = 0;
    bool in_prompt = false;
    int times = 0;  // in the output
  };
  struct Bias {
    TokenId id = 0;
    float value = 0;
  };
  Seen& entry(TokenId id);
  float penalised(float logit, const Seen& seen) const;

  float repetition_;
  float frequency_;
  float presence_;
  bool penalises_;
  std::vector<Bias> bias_;
  std::vector<Seen> seen_;            // each token once, in the order of appearance
  std::vector<int32_t> place_of_;     // by id: index into seen_, or -1
  std::vector<float> seen_before_;    // logits as they were, of seen_
  std::vector<float> biased_before_;  // and of bias_, penalties included
};

}  // namespace paceline
