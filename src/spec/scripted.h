// Drafts by a script: tests and studies decide what is guessed for each place of the output.
#pragma once

#include <vector>

#include "spec/drafter.h"

namespace paceline {

class ScriptedDrafter : public Drafter {
 public:
  // script[i] is drafted for output index i; index 0 is the token that the prefill yields, so it is
  // never drafted. Past the script's end the drafter is silent. Entries are not negative.
  explicit ScriptedDrafter(std::vector<TokenId> script) : script_(std::move(script)) {}

  DraftSource source() const override { return DraftSource::Scripted; }
  void begin(std::span<const TokenId> prompt, int capacity) override;
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override;
  int draft(std::span<Draft> out) override;

 private:
  std::vector<TokenId> script_;
  size_t n_output_ = 0;
};

}  // namespace paceline
