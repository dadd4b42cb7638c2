#include "spec/policy.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

// Weight of a round after the next one: about the last 33 trials of a cell count.
constexpr double kFade = 0.97;
// The priors weigh as much as this many trials, so a few rounds overrule them.
constexpr double kPriorTrials = 4;
// Measured costs are noisy to about a hundredth: a draft must promise more than that.
constexpr double kMinGain = 1.01;
constexpr int kFirstInterval = 8;
constexpr int kLongestInterval = 64;

// Chance that the token behind a match of this length follows it again; typical of a small trunk
// that edits or quotes. Level 0 is not used by lookup.
constexpr std::array<double, kEvidenceLevels> kLookupPrior = {
    0.30, 0.35, 0.50, 0.60, 0.67, 0.72, 0.76, 0.79, 0.82, 0.84, 0.86, 0.87, 0.88, 0.89, 0.90, 0.92};
constexpr double kScriptedPrior = 0.7;  // nothing is known of a script

double prior(DraftSource source, int evidence) {
  return source == DraftSource::Lookup ? kLookupPrior[evidence] : kScriptedPrior;
}

}  // namespace

DepthPolicy::DepthPolicy() : interval_(kFirstInterval) {
  for (int source = 0; source < kDraftSources; ++source) {
    for (int level = 0; level < kEvidenceLevels; ++level) {
      cells_[source][level] = {
          .stood = prior(static_cast<DraftSource>(source), level) * kPriorTrials,
          .tried = kPriorTrials};
    }
  }
}

double DepthPolicy::chance(const Draft& draft) const {
  const Cell& cell = cells_[static_cast<int>(draft.source)][draft.evidence];
  return cell.stood / cell.tried;
}

int DepthPolicy::most_promising(std::span<const Draft> drafts, const CostModel& costs) const {
  const int n_max = std::min(static_cast<int>(drafts.size()), CostModel::kMaxRows - 1);
  double joint = 1;   // chance that all drafts so far stand
  double tokens = 1;  // expected of the round
  double best = tokens / costs.verify[1] * kMinGain;
  int best_n = 0;
  for (int n = 1; n <= n_max; ++n) {
    joint *= chance(drafts[n - 1]);
    tokens += joint;
    const double rate = tokens / (costs.verify[n + 1] + n * costs.draft);
    if (rate > best) {
      best = rate;
      best_n = n;
    }
  }
  return best_n;
}

int DepthPolicy::choose(std::span<const Draft> drafts, const CostModel& costs) {
  const int n = most_promising(drafts, costs);
  const int n_max = std::min(static_cast<int>(drafts.size()), CostModel::kMaxRows - 1);
  exploring_ = n < n_max && ++held_back_ >= interval_;
  if (!exploring_) return n;
  held_back_ = 0;
  return n + 1;
}

void DepthPolicy::record(std::span<const Draft> verified, int n_accepted) {
  const int n = static_cast<int>(verified.size());
  check(n_accepted >= 0 && n_accepted <= n, "no more drafts stand than were verified");
  for (int i = 0; i < std::min(n, n_accepted + 1); ++i) {
    Cell& cell = cells_[static_cast<int>(verified[i].source)][verified[i].evidence];
    cell.stood = cell.stood * kFade + (i < n_accepted ? 1 : 0);
    cell.tried = cell.tried * kFade + 1;
  }
  if (exploring_ && n > 0 && n_accepted >= n - 1) {  // the extra draft was put to the test
    interval_ = n_accepted == n ? 1 : std::min(2 * interval_, kLongestInterval);
  }
  exploring_ = false;
}

}  // namespace paceline
