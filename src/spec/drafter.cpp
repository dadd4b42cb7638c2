#include "spec/drafter.h"

#include <cmath>

namespace paceline {

int depth_of(std::span<const Draft> drafts, int i) {
  int depth = 0;
  for (; i != kPending; i = parent_of(drafts, i)) ++depth;
  return depth;
}

uint8_t evidence_of(double chance) {
  const auto level = static_cast<int>(std::sqrt(std::max(chance, 0.0)) * kEvidenceLevels);
  return static_cast<uint8_t>(std::min(level, kEvidenceLevels - 1));
}

double chance_at(int evidence) {
  const double root = (evidence + 0.5) / kEvidenceLevels;
  return root * root;
}

const char* to_string(DraftSource source) {
  switch (source) {
    case DraftSource::Lookup:
      return "lookup";
    case DraftSource::Scripted:
      return "scripted";
    case DraftSource::Mtp:
      return "mtp";
    case DraftSource::Store:
      return "store";
  }
  return "unknown";
}

}  // namespace paceline
