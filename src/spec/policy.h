// How many drafts to verify: the number that promises most tokens a second, none included.
#pragma once

#include <array>
#include <span>

#include "spec/drafter.h"

namespace paceline {

// What a pass costs on this machine, in passes of one row.
struct CostModel {
  static constexpr int kMaxRows = 17;
  std::array<double, kMaxRows + 1> verify = {};  // verify[m] = r(m), m from 1; verify[1] = 1
  double draft = 0;                              // d: one draft
};

// Expected tokens of a round that verifies n drafts, over its cost, compared for every n:
//   (1 + p_1 + p_1 p_2 + ... + p_1...p_n) / (r(n + 1) + n d)
// The chance p of each draft comes from a running table of what was accepted, by source and
// evidence. Old rounds fade, so the table follows the text. Where the model says n and the drafter
// had more to offer, n + 1 is tried now and then, so that what was switched off is noticed when it
// becomes good: rarely while the extra draft falls, at once again when it stood.
//
// One policy a sequence: it starts from the priors, so that a run does not depend on those before.
class DepthPolicy {
 public:
  DepthPolicy();
  // How many of `drafts` to verify, 0 to drafts.size(), at most CostModel::kMaxRows - 1.
  int choose(std::span<const Draft> drafts, const CostModel& costs);
  // The round's outcome: the first n_accepted of the drafts that were verified stood; the next, if
  // there was one, fell; about those behind it nothing was learnt.
  void record(std::span<const Draft> verified, int n_accepted);
  // The table's present estimate that a draft stands, given that those before it stand.
  double chance(const Draft& draft) const;

 private:
  struct Cell {
    double stood = 0;
    double tried = 0;
  };
  int most_promising(std::span<const Draft> drafts, const CostModel& costs) const;

  std::array<std::array<Cell, kEvidenceLevels>, kDraftSources> cells_;
  bool exploring_ = false;  // the last draft of this round is an extra one
  int held_back_ = 0;       // rounds since the last extra draft in which there was one to try
  int interval_;            // rounds to hold back before the next
};

}  // namespace paceline
