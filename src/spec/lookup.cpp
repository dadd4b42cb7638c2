#include "spec/lookup.h"

#include <algorithm>

namespace paceline {

void LookupDrafter::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(prompt, capacity);
}

void LookupDrafter::observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) {
  text_.append(tokens);
}

int LookupDrafter::draft(std::span<Draft> out) {
  OwnText::Place place = text_.end();
  if (place.match_length() == 0 || place.match_length() < options_.min_match) return 0;
  for (Draft& draft : out) {
    const int evidence = std::min(place.match_length(), kEvidenceLevels - 1);
    draft = {.token = text_.next(place),
             .source = DraftSource::Lookup,
             .evidence = static_cast<uint8_t>(evidence)};
    place = text_.behind(place, draft.token);
  }
  return static_cast<int>(out.size());
}

}  // namespace paceline
