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

// Expected tokens of a round that verifies n drafts, over its cost, compared for every n; the
// chance of each draft comes from a running table of what was accepted, by source and evidence.
class DepthPolicy {
 public:
  DepthPolicy();
  // How many of `drafts` to verify, 0 to drafts.size().
  int choose(std::span<const Draft> drafts, const CostModel& costs) const;
  // The round's outcome: the first n_accepted of `drafts` stood; the next, if there was one, fell;
  // about those behind it nothing was learnt.
  void record(std::span<const Draft> drafts, int n_accepted);
  // The table's present estimate that a draft stands, given that those before it stand.
  double chance(const Draft& draft) const;

 private:
  struct Cell {
    double stood = 0;
    double tried = 0;
  };
  std::array<std::array<Cell, kEvidenceLevels>, kDraftSources> cells_;
};

}  // namespace paceline
