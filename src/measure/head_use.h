// Is a draft head of any use? Its first drafts over texts of the trunk's own, held against what
// drafting one and the same token all the time would give.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace paceline::measure {

struct HeadUse {
  enum class Verdict {
    Useful,    // better than the best constant draft, beyond chance (95 %)
    Useless,   // not
    Constant,  // it drafts one and the same token
    Unclear,   // the trunk's own text is so monotonous that a constant draft is as good as any
  };
  Verdict verdict = Verdict::Unclear;
  int64_t drafted = 0;  // first drafts
  int64_t accepted = 0;
  double commonest = 0;  // share of the text's most frequent token
  std::optional<TokenId> constant;
};
const char* to_string(HeadUse::Verdict verdict);  // "useful", "useless", "constant", "unclear"

// What the texts begin with: a repetition and two ordinary requests.
Result<std::vector<std::vector<TokenId>>> head_use_prompts(const Engine& engine);

// Writes up to max_tokens behind each prompt, greedily, with one draft of the head a round.
// BadUsage where there is no head; Interrupted by `stop`.
Result<HeadUse> look_at_head(const Engine& engine, std::span<const std::vector<TokenId>> prompts,
                             int max_tokens, const std::function<bool()>& stop = {});

// The lower end of Wilson's 95 % interval of hits / n.
double least_share(int64_t hits, int64_t n);

}  // namespace paceline::measure
