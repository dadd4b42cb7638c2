// Would a margin guard pay? Engines whose blocks are summed in another order than single rows can
// buy back equal text by reading a round again, exactly, where the two likeliest tokens are closer
// than a threshold. What that costs follows from how close they are and how far the faster kernels
// move them. (Exact kernels need no guard: docs/numerics.md.)
#pragma once

#include <span>
#include <vector>

#include "measure/trace.h"

namespace paceline::measure {

// The row behind which a token was chosen.
struct RowGap {
  int round = 0;  // ascending; rows of one round stand together
  float gap = 0;  // between the two largest logits
};

struct GuardOptions {
  std::vector<float> thresholds;  // none: from 0.01 to 10 in steps of about two
  // A round of exact kernels over one of the faster ones: what always being exact costs.
  double exact_cost = 1;
};

struct GuardRow {
  float threshold = 0;
  double coverage = 0;   // share of the traces' positions whose gap moves by no more
  double ambiguous = 0;  // share of rounds with a gap below the threshold
  // A guarded round (one fast pass, an exact one where it is ambiguous) over one that is exact
  // anyway: below 1 the guard pays.
  double cost = 0;
  // The exact_cost from which on it pays; infinite where every round is ambiguous.
  double break_even = 0;
};

struct Guard {
  std::vector<GuardRow> rows;
  int64_t rounds = 0;
  int64_t gaps = 0;
  int64_t positions = 0;  // of the traces, where the movement of the gap is known
  int64_t unknown = 0;    // positions where the candidate kept one of the two tokens only
  float largest = 0;      // movement
  // The break-even of the smallest threshold that covers every movement seen.
  double break_even = 0;
  // Rate of larger movements that so many positions cannot rule out (95 %: 3 / n), and how many
  // rows of the log that would be.
  double unseen_rate = 0;
  double unseen_rows = 0;
  bool thin() const { return unseen_rows >= 1; }
};

// BadUsage for traces that are not over the same rows, and where there is no gap to look at.
Result<Guard> weigh_guard(std::span<const RowGap> gaps, const std::vector<TracePoint>& reference,
                          const std::vector<TracePoint>& candidate, const GuardOptions& options);

}  // namespace paceline::measure
