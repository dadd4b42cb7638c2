#include "spec/scripted.h"

#include <algorithm>

namespace paceline {

void ScriptedDrafter::begin(std::span<const TokenId> /*prompt*/, int /*capacity*/) {
  n_output_ = 0;
}

void ScriptedDrafter::observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) {
  n_output_ += tokens.size();
}

int ScriptedDrafter::draft(std::span<Draft> out) {
  const size_t left = script_.size() - std::min(script_.size(), n_output_);
  const size_t n = std::min(out.size(), left);
  for (size_t i = 0; i < n; ++i) {
    out[i] = {.token = script_[n_output_ + i], .source = DraftSource::Scripted, .evidence = 0};
  }
  return static_cast<int>(n);
}

}  // namespace paceline
