#include "spec/draft_chances.h"

namespace paceline {
namespace {

// Chance that the token behind a match of this length follows it again; typical of a small trunk
// that edits or quotes. Level 0 is not used by lookup.
constexpr std::array<double, kEvidenceLevels> kLookupPrior = {
    0.10, 0.22, 0.55, 0.66, 0.73, 0.79, 0.82, 0.84, 0.86, 0.88, 0.89, 0.91, 0.92, 0.93, 0.94, 0.96};
// The same of another token that followed it before.
constexpr double kLookupSecond = 0.08;
constexpr double kPrior = 0.7;  // nothing is known of a script

double prior(DraftSource source, bool second, int evidence) {
  switch (source) {
    case DraftSource::Lookup:
      return second ? kLookupSecond : kLookupPrior[evidence];
    case DraftSource::Mtp:  // heads are a little too sure
      return 0.02 + 0.92 * chance_at(evidence);
    case DraftSource::Store:
      return chance_at(evidence);
    case DraftSource::Scripted:
      break;
  }
  return kPrior;
}

}  // namespace

DraftChances::DraftChances() {
  for (int source = 0; source < kDraftSources; ++source) {
    for (const bool second : {false, true}) {
      for (int level = 0; level < kEvidenceLevels; ++level) {
        const auto of = static_cast<DraftSource>(source);
        const Draft draft = {
            .source = of, .evidence = static_cast<uint8_t>(level), .second = second};
        shares_[evidence_kind(draft)] = Acceptance(prior(of, second, level));
      }
    }
  }
}

}  // namespace paceline
