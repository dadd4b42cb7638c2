// What passes cost on this machine, for the depth policy.
#pragma once

#include "base/result.h"
#include "models/model.h"
#include "spec/policy.h"

namespace paceline {

// Where a row costs a whole pass: drafting never pays.
CostModel worst_costs();

// Timing window: forward() alone, logits of all rows, behind 256 positions (fewer where the context
// is short), in a state of its own; widths interleaved, up and down in turn, the first sweep
// dropped; medians. Takes some hundred milliseconds, more only where three sweeps do.
// TooLarge when there is no memory for that state.
Result<CostModel> measure_costs(const Model& model, int context, CacheType cache);

}  // namespace paceline
