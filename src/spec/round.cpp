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
  const int limit = std::min(depth.limit, seq.budget - 1);
  const auto room = std::span(seq.guesses);
  if (limit <= 0) return {};
  if (drafter.grows()) {
    const int n = depth.nodes > 0 ? depth.nodes : limit;
    AlwaysPays always;
    GrowthRule* rule = &always;
    if (depth.policy != nullptr) {
      depth.policy->begin_growth(n, limit, *depth.costs);
      rule = depth.policy;
    }
    return room.first(
        drafter.grow({.out = room.first(n), .depth = limit, .chain = depth.nodes == 0}, *rule));
  }
  const int n =
      depth.policy == nullptr ? limit : depth.policy->ask(limit, *depth.costs, drafter.source());
  return n == 0 ? room.first(0) : room.first(drafter.draft(room.first(n)));
}

std::span<const Draft> select(std::span<const Draft> proposed, const Depth& depth) {
  if (depth.policy == nullptr) return proposed;
  return proposed.first(depth.policy->choose(proposed, *depth.costs));
}

void fill_block(Sequence& seq, std::span<const Draft> drafts) {
  seq.block.reset(seq.state->length());
  seq.block.add(seq.pending);
  for (int i = 0; i < static_cast<int>(drafts.size()); ++i)
    seq.block.add(drafts[i].token, parent_of(drafts, i) + 1);
}

// Hands out the drafts that stand and the token behind them, until one ends the sequence. Whether
// none did.
bool emit(Sequence& seq, const Accepted& accepted, std::span<const Draft> drafts,
          Mat<const float> logits, TokenSink& sink) {
  seq.emitted.clear();
  int row = 0;
  for (int depth = 1; depth <= accepted.n_drafts + 1; ++depth) {
    EmittedToken token = {.id = accepted.next};
    const int from = row;
    if (depth <= accepted.n_drafts) {
      const int i = accepted.path[depth - 1];
      token = {.id = drafts[i].token, .depth = depth, .source = drafts[i].source};
      row = i + 1;
    }
    seq.emitted.push_back(token.id);
    if (!sink.emit(token, logits.row(from))) return false;
  }
  return true;
}

// The rows of the block that are committed, row 0 first: one for each token emitted.
std::span<const int> path_of(Sequence& seq, const Accepted& accepted) {
  seq.path.assign(1, 0);
  for (const int i : accepted.standing()) seq.path.push_back(i + 1);
  return std::span(seq.path).first(seq.emitted.size());
}

// Those rows of the hiddens, one behind another.
Mat<const float> rows_of(Mat<const float> hidden, std::span<const int> path, Sequence& seq) {
  const auto n = static_cast<int>(path.size());
  if (path.back() == n - 1) return hidden.top(n);  // they lie so already
  seq.hiddens.resize(static_cast<size_t>(n) * hidden.cols);
  const Mat<float> moved(seq.hiddens.data(), n, hidden.cols);
  for (int i = 0; i < n; ++i) std::ranges::copy(hidden.row(path[i]), moved.row(i).begin());
  return moved;
}

}  // namespace

OpenRound open_round(Sequence& seq, Drafter& drafter, const Depth& depth) {
  check(seq.pending >= 0 && seq.budget >= 1, "a round has a pending token and room for one more");
  const auto start = Clock::now();
  OpenRound round;
  round.proposed = propose(seq, drafter, depth);
  round.drafts = select(round.proposed, depth);
  fill_block(seq, round.drafts);
  round.draft_seconds = seconds_since(start);
  return round;
}

Result<RoundStats> close_round(Sequence& seq, const OpenRound& round, const TrunkOut& out,
                               Drafter& drafter, const Depth& depth, AcceptRule& rule,
                               TokenSink& sink) {
  RoundStats stats;
  const auto drafts = round.drafts;
  const auto accepted = rule.accept(drafts, out.logits, seq.block.first_pos());
  if (!accepted) return accepted.error();
  stats.ended = !emit(seq, *accepted, drafts, out.logits, sink);
  stats.n_proposed = static_cast<int>(round.proposed.size());
  stats.n_emitted = static_cast<int>(seq.emitted.size());
  stats.n_drafted = seq.block.depth() - 1;  // the pending token is no draft
  if (stats.ended) stats.n_drafted = std::min(stats.n_drafted, stats.n_emitted);
  stats.n_accepted = std::min(accepted->n_drafts, stats.n_emitted);
  stats.path = accepted->path;
  stats.draft_seconds = round.draft_seconds;

  const auto path = path_of(seq, *accepted);
  seq.state->commit(path);  // all other rows are rolled back
  seq.pending = seq.emitted.back();
  seq.budget -= stats.n_emitted;
  rule.commit(seq.emitted);
  // Heads catch up with the text.
  drafter.observe(seq.emitted, rows_of(out.at(drafter.tap()), path, seq));
  if (depth.policy != nullptr) depth.policy->record(drafts, stats.standing(), stats.n_drafted);
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
