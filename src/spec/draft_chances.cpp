#include "spec/draft_chances.h"

namespace paceline {
namespace {

// Chance that the token behind a match of this length follows it again; typical of a small trunk
// that edits or quotes. Level 0 is not used by lookup.
constexpr std::array<double, kEvidenceLevels> kLookupPrior = {
    0.10, 0.22, 0.55, 0.66, 0.73, 0.79, 0.82, 0.84, 0.86, 0.88, 0.89, 0.91, 0.92, 0.93, 0.94, 0.96};
constexpr double kPrior = 0.7;  // nothing is known of a script

double prior(DraftSource source, int evidence) {
  switch (source) {
    case DraftSource::Lookup:
      return kLookupPrior[evidence];
    case DraftSource::Mtp:  // heads are a little too sure
      return 0.05 + 0.9 * (evidence + 0.5) / kEvidenceLevels;
    case DraftSource::Store:
      return (evidence + 0.5) / kEvidenceLevels;
    case DraftSource::Scripted:
      break;
  }
  return kPrior;
}

}  // namespace

DraftChances::DraftChances() {
  for (int source = 0; source < kDraftSources; ++source) {
    for (int level = 0; level < kEvidenceLevels; ++level) {
      shares_[source][level] = Acceptance(prior(static_cast<DraftSource>(source), level));
    }
  }
}

}  // namespace paceline
