#include "spec/round.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A round emits one token more than drafts stand, and never more than the budget.
std::span<const Draft> propose(Sequence& seq, Drafter& drafter, const Depth& depth) {
  int limit = std::min(depth.limit, seq.budget - 1);
  if (depth.policy != nullptr) limit = depth.policy->ask(limit, *depth.costs, drafter.source());
  const std::span<Draft> room = std::span(seq.guesses).first(limit);
  return room.empty() ? room : room.first(drafter.draft(room));
}

std::span<const Draft> select(std::span<const Draft> proposed, const Depth& depth) {
  if (depth.policy == nullptr) return proposed;
  return proposed.first(depth.policy->choose(proposed, *depth.costs));
}

void fill_block(Sequence& seq, std::span<const Draft> drafts) {
  seq.block.reset(seq.state->length());
  seq.block.add(seq.pending);
  for (const Draft& draft : drafts) seq.block.add(draft.token);
}

// Hands out the drafts that stand and the token behind them, until one ends the sequence. Whether
// none did.
bool emit(Sequence& seq, const Accepted& accepted, std::span<const Draft> drafts,
          Mat<const float> logits, TokenSink& sink) {
  seq.emitted.clear();
  for (int row = 0; row <= accepted.n_drafts; ++row) {
    const bool stood = row < accepted.n_drafts;
    const EmittedToken token = {.id = stood ? drafts[row].token : accepted.next,
                                .depth = stood ? row + 1 : 0,
                                .source = stood ? drafts[row].source : DraftSource::Scripted};
    seq.emitted.push_back(token.id);
    if (!sink.emit(token, logits.row(row))) return false;
  }
  return true;
}

}  // namespace

OpenRound open_round(Sequence& seq, Drafter& drafter, const Depth& depth) {
  check(seq.pending >= 0 && seq.budget >= 1, "a round has a pending token and room for one more");
  const auto start = Clock::now();
  OpenRound round;
  round.proposed = propose(seq, drafter, depth);
  round.drafts = select(round.proposed, depth);
  fill_block(seq, round.drafts);  // the pending token, then drafts
  round.draft_seconds = seconds_since(start);
  return round;
}

Result<RoundStats> close_round(Sequence& seq, const OpenRound& round, const TrunkOut& out,
                               Drafter& drafter, const Depth& depth, AcceptRule& rule,
                               TokenSink& sink) {
  RoundStats stats;
  const auto drafts = round.drafts;
  const auto accepted =
      rule.accept(seq.block.tokens().subspan(1), out.logits, seq.block.first_pos());
  if (!accepted) return accepted.error();
  stats.ended = !emit(seq, *accepted, drafts, out.logits, sink);
  stats.n_proposed = static_cast<int>(round.proposed.size());
  stats.n_emitted = static_cast<int>(seq.emitted.size());
  stats.n_drafted = static_cast<int>(drafts.size());
  if (stats.ended) stats.n_drafted = std::min(stats.n_drafted, stats.n_emitted);
  stats.n_accepted = std::min(accepted->n_drafts, stats.n_emitted);
  stats.draft_seconds = round.draft_seconds;

  seq.state->commit(stats.n_emitted);  // later rows are rolled back
  seq.pending = seq.emitted.back();
  seq.budget -= stats.n_emitted;
  rule.commit(seq.emitted);
  drafter.observe(seq.emitted,
                  out.at(drafter.tap()).top(stats.n_emitted));  // heads catch up with the text
  if (depth.policy != nullptr)
    depth.policy->record(drafts.first(stats.n_drafted), stats.n_accepted);
  return stats;
}

Result<RoundStats> run_round(Sequence& seq, const Model& trunk, Workspace& workspace,
                             Drafter& drafter, const Depth& depth, AcceptRule& rule,
                             TokenSink& sink) {
  const OpenRound round = open_round(seq, drafter, depth);
  const auto start = Clock::now();
  const TrunkOut out = trunk.forward(seq.block, *seq.state, LogitRows::All, workspace);
  const double verify_seconds = seconds_since(start);
  auto stats = close_round(seq, round, out, drafter, depth, rule, sink);
  if (stats) stats->verify_seconds = verify_seconds;
  return stats;
}

}  // namespace paceline
