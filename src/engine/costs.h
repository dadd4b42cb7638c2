// What passes cost on this machine: for the depth policy, and for whoever wants to know.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/draft_head.h"
#include "models/model.h"
#include "spec/policy.h"

namespace paceline {

// Seconds of passes of some widths, all behind the same committed positions.
struct PassTimes {
  int position = 0;
  std::vector<int> widths;                   // ascending from 1
  std::vector<std::vector<double>> seconds;  // of each width, a value a sweep
};

struct PassSweeps {
  std::span<const int> widths;  // ascending from 1; those wider than the context are left out
  int position = 256;           // fewer where the context is short
  int least = 3;                // sweeps over all widths
  int most = 15;
  double seconds = 0.3;             // begin no sweep beyond `least` after this time
  double prefill_seconds = 0.2;     // a slow trunk is measured behind fewer positions
  std::function<bool()> stop = {};  // looked at between passes
};

// Timing window: forward() alone, logits of all rows, in a state of its own; widths interleaved, up
// and down in turn, one more sweep at the start that is dropped. TooLarge when there is no memory
// for that state; Interrupted when it was stopped before every width had a time.
Result<PassTimes> time_passes(const Model& model, int context, CacheType cache,
                              const PassSweeps& sweeps);

// Where a row costs a whole pass: drafting never pays.
CostModel worst_costs();

// Medians over a first sight of the machine, some hundred milliseconds, and the price of a lookup.
Result<CostModel> measure_costs(const Model& model, int context, CacheType cache);

// The price of a draft of the head, in passes of one row: rounds that read two rows of the text and
// make four drafts, with a pass of the trunk between them, as in decoding.
Result<double> measure_head(const Model& model, const DraftHead& head, int context,
                            CacheType cache);

}  // namespace paceline
