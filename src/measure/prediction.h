// What a speculative run should take, from what its parts cost: the model that the depth policy
// decides by, held against the clock.
#pragma once

#include "engine/engine.h"
#include "measure/pass_costs.h"

namespace paceline::measure {

// Seconds of all rounds of a run. Known of the run: how many rounds verified how many drafts, how
// many drafts were asked for, and its tokens; none of its times. Of a round with n drafts the pass
// takes r(n + 1) of a plain one; the drafts take draft_seconds each; what is left of a round
// (accepting, text) goes with the tokens. `plain`: the run without drafts beside it, with at least
// one round.
double predicted_seconds(const GenerationStats& run, const GenerationStats& plain,
                         const PassCosts& passes, double draft_seconds);

}  // namespace paceline::measure
