#include "spec/lookup.h"

#include <algorithm>

namespace paceline {

void LookupDrafter::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(capacity);
  for (const TokenId token : prompt) text_.append(token);
}

void LookupDrafter::observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) {
  for (const TokenId token : tokens) text_.append(token);
}

int LookupDrafter::draft(std::span<Draft> out) {
  const int match = text_.match_length();
  if (match == 0 || match < options_.min_match) return 0;
  const std::span<const TokenId> text = text_.text();
  const size_t first = static_cast<size_t>(text_.match_end()) + 1;  // within the text
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = first + i;
    const int evidence = std::min(match + static_cast<int>(i), kEvidenceLevels - 1);
    out[i] = {.token = at < text.size() ? text[at] : out[at - text.size()].token,
              .source = DraftSource::Lookup,
              .evidence = static_cast<uint8_t>(evidence)};
  }
  return static_cast<int>(out.size());
}

}  // namespace paceline
