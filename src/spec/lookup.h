// Drafts from the request's own text: what followed the last time when the text ended like now.
#pragma once

#include "spec/drafter.h"
#include "spec/own_text.h"

namespace paceline {

struct LookupOptions {
  // Silent when the longest repeated suffix is shorter. 1 leaves it to the policy, which learns for
  // each length of match what it is worth.
  int min_match = 1;
};

// What spec/own_text.h finds, draft by draft. The evidence of the draft at depth d is the length of
// the match that it continues, match + d - 1.
class LookupDrafter : public Drafter {
 public:
  explicit LookupDrafter(LookupOptions options = {}) : options_(options) {}

  void begin(std::span<const TokenId> prompt, int capacity) override;
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override;
  int draft(std::span<Draft> out) override;

 private:
  LookupOptions options_;
  OwnText text_;
};

}  // namespace paceline
