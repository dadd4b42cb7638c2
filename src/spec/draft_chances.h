// What drafts are worth: how often those of a source stood, by how sure it was and whether it was
// its first.
#pragma once

#include <array>

#include "spec/acceptance.h"
#include "spec/drafter.h"

namespace paceline {

// Running shares, a sequence's own: they begin with what is typical of a small trunk and follow the
// text.
class DraftChances {
 public:
  DraftChances();
  // The chance that a draft at `depth` (from 1) stands, given that those before it stand.
  double chance(const Draft& draft, int depth) const {
    return shares_[evidence_kind(draft)].chance(depth);
  }
  // The draft, those before it having stood, stood or fell.
  void add(const Draft& draft, int depth, bool stood) {
    shares_[evidence_kind(draft)].add(depth, stood ? 1 : 0);
  }

 private:
  std::array<Acceptance, kEvidenceKinds> shares_;
};

}  // namespace paceline
