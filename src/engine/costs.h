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

// What passes of some widths cost beside passes of one row, all behind the same committed
// positions.
struct PassTimes {
  int position = 0;
  std::vector<double> one_row_seconds;      // of each pass of one row
  std::vector<int> widths;                  // from 2 on, in the order they were asked for in
  std::vector<std::vector<double>> ratios;  // r of each width, a value a sweep
};

struct PassSweeps {
  std::span<const int> widths = {};  // from 2 on; those wider than the context are left out
  size_t fewest = 3;                 // widths that are timed however long it takes
  int position = 256;                // fewer where the context is short
  int most = 15;                     // sweeps over all widths
  double seconds = 0.4;              // begin no sweep after this time
  double prefill_seconds = 0.2;      // a slow trunk is measured behind fewer positions
  std::function<bool()> stop = {};   // looked at between passes
};

// Timing window: forward() alone, logits of all rows, in a state of its own. A pass of one row
// stands on either side of every other, whose ratio is taken from these two: what changes on a
// machine from one moment to the next changes both. Sweeps go forth and back in turn. The first may
// take a third of the time, so that no width has a single value where there can be more: those
// behind the first `fewest` that it does not come to are left out. TooLarge when there is no
// memory for that state; Interrupted when it was stopped before every width had a time.
Result<PassTimes> time_passes(const Model& model, int context, CacheType cache,
                              const PassSweeps& sweeps);

// Where a row costs a whole pass: drafting never pays.
CostModel worst_costs();

// Medians over a first sight of the machine, some hundred milliseconds or nine passes, and the
// price of a lookup. A CostTracker goes on from there.
Result<CostModel> measure_costs(const Model& model, int context, CacheType cache);

// The price of a draft of the head, in passes of one row: rounds that read two rows of the text and
// make four drafts, with a pass of the trunk between them, as in decoding.
Result<double> measure_head(const Model& model, const DraftHead& head, int context,
                            CacheType cache);

}  // namespace paceline
