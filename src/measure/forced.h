// Teacher forcing: what a trunk would choose at every position of a text that is given, read in
// blocks of one width and in blocks of another.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace paceline::measure {

// A position at which the two widths choose differently.
struct ForcedFlip {
  int position = 0;  // index into the output
  TokenId a = 0;
  TokenId b = 0;
  float gap = 0;      // between the two largest logits of the first width
  int rank_of_a = 0;  // of the first width's choice among the logits of the second; 0: the largest
  int rank_of_b = 0;  // and the other way round
};

struct Forced {
  // Gaps from 0, 0.5, 1, 2, 5 up.
  static constexpr std::array<float, 5> kGaps = {0, 0.5f, 1, 2, 5};

  int64_t positions = 0;
  std::array<int64_t, kGaps.size()> by_gap = {};     // positions
  std::array<int64_t, kGaps.size()> differing = {};  // of them, where the choices differ
  int64_t moved = 0;                                 // positions with a logit that has other bits
  std::vector<ForcedFlip> flips;                     // of the last text, ascending

  int64_t all_differing() const;
  double rate() const;
};

// Reads `ids` behind `prompt` twice, in blocks of width_a and width_b rows, some of which
// end in wrong drafts that fall, and counts into `forced`. Interrupted when `stop` says so.
Result<void> compare_forced(const Engine& engine, std::span<const TokenId> prompt,
                            std::span<const TokenId> ids, int width_a, int width_b, Forced& forced,
                            const std::function<bool()>& stop = {});

}  // namespace paceline::measure
