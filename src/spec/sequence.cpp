#include "spec/sequence.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

Sequence make_sequence(std::unique_ptr<SequenceState> state, int budget, int most_drafts, int dim) {
  check(budget >= 1 && most_drafts >= 0, "a sequence has a budget");
  Sequence seq{.state = std::move(state),
               .block = Block(std::max(kPrefillRows, most_drafts + 1)),
               .guesses = std::vector<Draft>(most_drafts),
               .emitted = {},
               .path = {},
               .hiddens = {},
               .pending = -1,
               .budget = budget};
  const auto longest = static_cast<size_t>(std::min(most_drafts, kMostDrafts)) + 1;
  seq.emitted.reserve(longest);
  seq.path.reserve(longest);
  seq.hiddens.reserve(longest * static_cast<size_t>(dim));
  return seq;
}

LogitRows open_chunk(Sequence& seq, std::span<const TokenId> prompt) {
  const auto first = static_cast<size_t>(seq.state->length());
  check(first < prompt.size(), "there is a rest of the prompt to read");
  const size_t rows = std::min<size_t>(prompt.size() - first, kPrefillRows);
  seq.block.reset(static_cast<int>(first));
  for (const TokenId token : prompt.subspan(first, rows)) seq.block.add(token);
  return first + rows == prompt.size() ? LogitRows::Last : LogitRows::None;
}

Result<Progress> close_chunk(Sequence& seq, std::span<const TokenId> prompt, const TrunkOut& out,
                             Drafter& drafter, AcceptRule& rule, TokenSink& sink) {
  const int first = seq.state->length();
  const int rows = seq.block.rows();
  seq.state->commit(rows);
  const bool last = static_cast<size_t>(seq.state->length()) == prompt.size();
  const int with_next = last ? rows - 1 : rows;  // rows followed by the prompt
  const Mat<const float> hidden = out.at(drafter.tap());
  drafter.prefill(prompt.subspan(first + 1, with_next), hidden.top(with_next));
  if (!last) return Progress::Prompt;

  const auto accepted = rule.accept({}, out.logits, first + rows - 1);
  if (!accepted) return accepted.error();
  seq.pending = accepted->next;
  --seq.budget;
  const bool goes_on = sink.emit({.id = seq.pending}, out.logits.row(0));
  rule.commit({&seq.pending, 1});
  drafter.observe({&seq.pending, 1}, hidden.middle(with_next, 1));
  return goes_on ? Progress::Goes : Progress::Ended;
}

Result<Progress> run_prefill(Sequence& seq, const Model& trunk, Workspace& workspace,
                             std::span<const TokenId> prompt, Drafter& drafter, AcceptRule& rule,
                             TokenSink& sink) {
  for (;;) {
    const LogitRows rows = open_chunk(seq, prompt);
    const TrunkOut out = trunk.forward(seq.block, *seq.state, rows, workspace);
    auto progress = close_chunk(seq, prompt, out, drafter, rule, sink);
    if (!progress || *progress != Progress::Prompt) return progress;
  }
}

}  // namespace paceline
