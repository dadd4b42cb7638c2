#include "spec/acceptance.h"

#include "base/check.h"

namespace paceline {
namespace {

// Weight of a trial after the next one: a share is of about the last 100.
constexpr double kFade = 0.99;
// The share over all depths, within that of one depth. More makes one that is rarely tried
// steadier.
constexpr double kSharedTrials = 24;

}  // namespace

Acceptance::Acceptance(double prior, double trials)
    : all_{.stood = prior * trials, .tried = trials} {}

double Acceptance::chance(int depth) const {
  check(depth >= 1 && depth <= kMostDrafts, "a depth is one of a round's");
  const Share& own = by_depth_[depth - 1];
  return (own.stood + kSharedTrials * all_.stood / all_.tried) / (own.tried + kSharedTrials);
}

void Acceptance::add(int depth, double stood) {
  check(depth >= 1 && depth <= kMostDrafts, "a depth is one of a round's");
  add(all_, stood);
  add(by_depth_[depth - 1], stood);
}

void Acceptance::add(Share& share, double stood) {
  share.stood = share.stood * kFade + stood;
  share.tried = share.tried * kFade + 1;
}

}  // namespace paceline
