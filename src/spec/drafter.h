// A drafter guesses the tokens that come next. Whatever it guesses, the text stays the trunk's own;
// only the speed depends on it.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "models/model.h"

namespace paceline {

enum class DraftSource : uint8_t { Lookup, Scripted };
inline constexpr int kDraftSources = 2;
const char* to_string(DraftSource source);  // "lookup"

// One guess.
struct Draft {
  TokenId token = 0;
  DraftSource source = DraftSource::Scripted;
  // How sure the source is, as a level in [0, kEvidenceLevels): for lookup the length of the match.
  // The policy learns what a level is worth from what was accepted.
  uint8_t evidence = 0;
};
inline constexpr int kEvidenceLevels = 16;

class Drafter {
 public:
  virtual ~Drafter() = default;

  // A new sequence. Everything known of an earlier one is forgotten.
  virtual void begin(std::span<const TokenId> prompt) = 0;

  // What the last pass made of the sequence: `tokens` were appended to the text. The row of
  // `hidden` (rows, dim) at index i is the trunk's hidden of the token before tokens[i]; drafters
  // with a cache of their own (draft heads) keep one entry per committed position from it.
  virtual void observe(std::span<const TokenId> tokens, Mat<const float> hidden) = 0;

  // Guesses for the positions behind the text so far, the most likely chain first; fewer than
  // out.size(), down to none, where the drafter has nothing worth saying. Returns how many.
  virtual int draft(std::span<Draft> out) = 0;
};

}  // namespace paceline
