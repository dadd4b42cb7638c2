#include "spec/draft_chances.h"

namespace paceline {
namespace {

using Levels = std::array<double, kEvidenceLevels>;

// What stood of the guesses for places that were reached, by level, of a small trunk that answers
// prompts of many kinds (docs/benchmarks.md).
constexpr Levels kLookup = {0.05, 0.11, 0.41, 0.60, 0.68, 0.75, 0.79, 0.83,
                            0.85, 0.86, 0.87, 0.87, 0.88, 0.89, 0.90, 0.97};
constexpr Levels kLookupSecond = {0.02, 0.04, 0.09, 0.15, 0.20, 0.20, 0.20, 0.20,
                                  0.20, 0.20, 0.20, 0.20, 0.20, 0.20, 0.20, 0.20};
constexpr Levels kHead = {0.01, 0.02, 0.04, 0.06, 0.10, 0.14, 0.18, 0.25,
                          0.30, 0.37, 0.45, 0.53, 0.63, 0.73, 0.85, 0.96};
constexpr Levels kHeadSecond = {0.01, 0.01, 0.03, 0.04, 0.07, 0.11, 0.15, 0.19,
                                0.24, 0.31, 0.37, 0.40, 0.40, 0.40, 0.40, 0.40};
constexpr Levels kStore = {0.01, 0.01, 0.01, 0.02, 0.04, 0.05, 0.06, 0.07,
                           0.11, 0.13, 0.17, 0.21, 0.30, 0.42, 0.67, 0.92};
constexpr Levels kStoreSecond = {0.01, 0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06,
                                 0.09, 0.10, 0.12, 0.12, 0.12, 0.15, 0.30, 0.30};
constexpr double kScript = 0.7;  // nothing is known of one

// A measured prior is not overruled by a few rounds.
double trials(DraftSource source) { return source == DraftSource::Scripted ? 8 : 24; }

double prior(DraftSource source, bool second, int evidence) {
  switch (source) {
    case DraftSource::Lookup:
      return (second ? kLookupSecond : kLookup)[evidence];
    case DraftSource::Mtp:
      return (second ? kHeadSecond : kHead)[evidence];
    case DraftSource::Store:
      return (second ? kStoreSecond : kStore)[evidence];
    case DraftSource::Scripted:
      break;
  }
  return kScript;
}

}  // namespace

DraftChances::DraftChances() {
  for (int source = 0; source < kDraftSources; ++source) {
    for (const bool second : {false, true}) {
      for (int level = 0; level < kEvidenceLevels; ++level) {
        const auto of = static_cast<DraftSource>(source);
        const Draft draft = {
            .source = of, .evidence = static_cast<uint8_t>(level), .second = second};
        shares_[evidence_kind(draft)] = Acceptance(prior(of, second, level), trials(of));
      }
    }
  }
}

}  // namespace paceline
