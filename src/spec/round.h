// A round: draft, verify, accept, commit; one trunk pass, which sequences may share.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "spec/accept.h"
#include "spec/drafter.h"
#include "spec/policy.h"
#include "spec/sequence.h"

namespace paceline {

// How many drafts a round verifies.
struct Depth {
  int limit = 0;                     // K: so many on the longest path
  int nodes = 0;                     // drafts of a tree at most, kMostNodes or fewer; 0: a chain
  DepthPolicy* policy = nullptr;     // decides each round; null: all there is room for
  const CostModel* costs = nullptr;  // for the policy

  int most_drafts() const { return nodes > 0 ? nodes : limit; }
};

// A round that waits for the trunk: its block stands in the sequence.
struct OpenRound {
  std::span<const Draft> proposed;  // guesses of the drafter
  std::span<const Draft> drafts;    // those that the block holds
  double draft_seconds = 0;
};

// Counts of one round. Drafts behind a token that ends the sequence count neither as drafted nor as
// accepted.
struct RoundStats {
  int n_proposed = 0;  // guesses of the drafter, before the policy chose and wherever it ended
  int n_drafted = 0;   // depths 1 to n_drafted were verified by the trunk
  int n_accepted = 0;  // depths 1 to n_accepted stood:
  std::array<uint8_t, kMostDrafts> path = {};  // these drafts
  int n_emitted = 0;                           // tokens
  bool ended = false;                          // the sink ended the sequence
  double draft_seconds = 0;
  double verify_seconds = 0;  // the whole pass, also where several sequences share it

  std::span<const uint8_t> standing() const { return std::span(path).first(n_accepted); }
};

// Puts the pending token and the drafts into the block. The sequence has a pending token and a
// budget of at least 1; paths are clipped to the budget, so that a round never emits more.
OpenRound open_round(Sequence& seq, Drafter& drafter, const Depth& depth);

// Accepts and commits what the trunk made of the block, logits of all rows. One row is committed
// for each token emitted: the last of them is the new pending token. Every later row is void.
// Allocates nothing. An error (a row without a finite maximum) leaves the text as it was.
Result<RoundStats> close_round(Sequence& seq, const OpenRound& round, const TrunkOut& out,
                               Drafter& drafter, const Depth& depth, AcceptRule& rule,
                               TokenSink& sink);

// A whole round of a sequence that runs alone.
Result<RoundStats> run_round(Sequence& seq, const Model& trunk, Workspace& workspace,
                             Drafter& drafter, const Depth& depth, AcceptRule& rule,
                             TokenSink& sink);

}  // namespace paceline
