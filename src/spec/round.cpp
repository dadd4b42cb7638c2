#include "spec/round.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace paceline {
namespace {

class Stopwatch {
 public:
  // Seconds since the last call, or since it was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// A round emits one token more than drafts stand, and never more than the budget.
std::span<const Draft> propose(Sequence& seq, Drafter& drafter, const Depth& depth) {
  int limit = std::min(depth.limit, seq.budget - 1);
  if (depth.policy != nullptr) limit = depth.policy->ask(limit, *depth.costs);
  const std::span<Draft> room = std::span(seq.guesses).first(limit);
  return room.empty() ? room : room.first(drafter.draft(room));
}

std::span<const Draft> select(std::span<const Draft> proposed, const Depth& depth) {
  if (depth.policy == nullptr) return proposed;
  return proposed.first(depth.policy->choose(proposed, *depth.costs));
}

const Block& block_with(Sequence& seq, std::span<const Draft> drafts) {
  seq.block.reset(seq.state->length());
  seq.block.add(seq.pending);
  for (const Draft& draft : drafts) seq.block.add(draft.token);
  return seq.block;
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

Result<RoundStats> run_round(Sequence& seq, Drafter& drafter, const Depth& depth,
                             const AcceptRule& rule, TokenSink& sink) {
  check(seq.pending >= 0 && seq.budget >= 1, "a round has a pending token and room for one more");
  Stopwatch watch;
  RoundStats stats;

  const auto proposed = propose(seq, drafter, depth);
  const auto drafts = select(proposed, depth);
  const Block& block = block_with(seq, drafts);  // the pending token, then drafts
  stats.draft_seconds = watch.lap();

  const TrunkOut out = seq.trunk->forward(block, *seq.state, LogitRows::All, *seq.workspace);
  stats.verify_seconds = watch.lap();

  const auto accepted = rule.accept(block.tokens().subspan(1), out.logits, block.first_pos());
  if (!accepted) return accepted.error();
  stats.ended = !emit(seq, *accepted, drafts, out.logits, sink);
  stats.n_proposed = static_cast<int>(proposed.size());
  stats.n_emitted = static_cast<int>(seq.emitted.size());
  stats.n_drafted = static_cast<int>(drafts.size());
  if (stats.ended) stats.n_drafted = std::min(stats.n_drafted, stats.n_emitted);
  stats.n_accepted = std::min(accepted->n_drafts, stats.n_emitted);

  seq.state->commit(stats.n_emitted);  // later rows are rolled back
  seq.pending = seq.emitted.back();
  seq.budget -= stats.n_emitted;
  drafter.observe(seq.emitted, out.hidden.top(stats.n_emitted));  // heads catch up with the text
  if (depth.policy != nullptr)
    depth.policy->record(drafts.first(stats.n_drafted), stats.n_accepted);
  return stats;
}

}  // namespace paceline
