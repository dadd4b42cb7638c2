// What is counted of rounds, live and in replay alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/drafter.h"
#include "spec/round.h"

namespace paceline {

// Sums over rounds. Drafts behind a token that ended its sequence are in none of them; the token
// that a prefill yields belongs to no round.
struct RoundCounts {
  int depth_limit = 0;  // K: entries of the lists by depth
  int64_t rounds = 0;
  int64_t round_tokens = 0;  // tokens emitted by rounds
  int64_t proposed = 0;      // guesses of the drafter, those included that the policy held back
  int64_t drafted = 0;       // verified by the trunk: its rows are these and one a round
  std::vector<int64_t> rounds_by_drafted = {};  // rounds that verified n drafts
  std::vector<int64_t> drafted_by_depth = {};   // rounds that verified a draft at this depth
  std::vector<int64_t> accepted_by_depth = {};
  std::vector<int64_t> drafted_by_source = {};  // index: DraftSource
  std::vector<int64_t> accepted_by_source = {};
  // Of those whose place was reached, because all before them stood; index: evidence_kind.
  std::vector<int64_t> tested_by_evidence = {};
  std::vector<int64_t> stood_by_evidence = {};

  // All zero, with room for K depths. Takes the memory for all that follows.
  void begin(int depth);
  // drafts: those that the round verified.
  void add(const RoundStats& round, std::span<const Draft> drafts);
  void add(const RoundCounts& other);

  double tokens_per_round() const {
    return rounds > 0 ? static_cast<double>(round_tokens) / static_cast<double>(rounds) : 0;
  }
  // E: drafts of a round that stand, the sum over depths of the share of rounds in which it stood.
  double expected() const {
    double sum = 0;
    for (const int64_t accepted : accepted_by_depth)
      if (rounds > 0) sum += static_cast<double>(accepted) / static_cast<double>(rounds);
    return sum;
  }
  bool operator==(const RoundCounts&) const = default;
};

}  // namespace paceline
