// Whether one head takes the place of another, as `train --promote` and `replay --against` tell it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/json_file.h"
#include "base/result.h"
#include "io/dump.h"
#include "measure/promotion.h"
#include "spec/counts.h"

namespace paceline::apps {

// What one head took for some streams.
struct HeadRounds {
  RoundCounts all;
  std::vector<measure::PromptRounds> prompts;

  void add(const DumpStream& stream, const RoundCounts& counts);
};

struct Verdict {
  bool promoted = false;
  std::string sentence;  // "promoted: over 72 prompts it rises from ...; E 0.81 to 0.90"
  std::string table;     // a line a category, and one of all prompts
  Json json;
};

// By measure/promotion.h: the same streams in the same order under both heads.
Result<Verdict> verdict_of(const HeadRounds& before, const HeadRounds& after, uint64_t seed);

}  // namespace paceline::apps
