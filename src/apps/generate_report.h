// What generate says at the end: a summary for people, results as JSON for scripts.
#pragma once

#include <string>
#include <vector>

#include "apps/json_file.h"
#include "apps/stream.h"

namespace paceline::apps {

struct PromptResult {
  std::string id;
  std::vector<TokenId> prompt_ids;
  std::vector<ArmResult> arms;  // in the order of --depths; fewer after Ctrl-C

  // Whether all arms wrote the same ids, text, and log-probabilities to the last bit. Of an arm
  // that was interrupted, as far as it came.
  bool identical() const;
};

// {"lookup": 310, "mtp": 95, ...}
Json by_source_json(const std::vector<int64_t>& counts);
// Of drafts whose place was reached, how many stood, by source, by whether it was the source's
// first guess, and by how sure it was: a list of the kinds that occurred.
Json calibration_json(const RoundCounts& counts);
Json results_json(const std::vector<PromptResult>& results);
// A line an arm, over all prompts, on standard error.
void print_summary(const std::vector<PromptResult>& results, const std::vector<DraftShape>& arms);

}  // namespace paceline::apps
