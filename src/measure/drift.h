// Whether two runs over the same prompts wrote the same: by token ids, never by text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace paceline::measure {

// What one run wrote behind one prompt.
struct IdStream {
  std::string prompt;  // names it: text, or ids joined by commas
  std::vector<TokenId> ids;
};

// In order of badness: the worst prompt decides.
enum class DriftOutcome { Same, SamePrefix, Different };
const char* to_string(DriftOutcome outcome);  // "same", "same_prefix", "different"

struct Flip {
  int prompt = 0;    // index
  int position = 0;  // index into the output
  TokenId a = 0;
  TokenId b = 0;
};

struct PromptDrift {
  DriftOutcome outcome = DriftOutcome::Same;
  std::optional<Flip> first_flip;  // where the ids differ, both being there
  int length_a = 0;
  int length_b = 0;
  // The answer ends in a short cycle: what was accepted there says little.
  bool cyclic_a = false;
  bool cyclic_b = false;
};

struct Drift {
  DriftOutcome outcome = DriftOutcome::Same;
  std::vector<PromptDrift> prompts;
  std::optional<Flip> first_flip;  // of the prompt whose flip comes earliest
  int64_t compared = 0;            // positions that both runs have
  int64_t differing = 0;           // of them
  // Behind a flip both runs go their own ways, so this says how early they part, not how often the
  // two would choose differently: that is the teacher-forced rate.
  double flip_rate() const {
    return compared > 0 ? static_cast<double>(differing) / static_cast<double>(compared) : 0;
  }
};

// BadUsage where the two are not about the same prompts in the same order, or one wrote nothing.
Result<Drift> compare_streams(const std::vector<IdStream>& a, const std::vector<IdStream>& b);

}  // namespace paceline::measure
