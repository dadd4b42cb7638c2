#include "spec/sequence.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

Result<Sequence> make_sequence(const Model& trunk, int prompt_tokens, int budget, int max_depth,
                               CacheType cache) {
  check(prompt_tokens >= 1 && budget >= 1 && max_depth >= 0,
        "a sequence has a prompt and a budget");
  // The last token emitted is never read, so it needs no position.
  const int capacity = prompt_tokens + budget - 1;
  auto state = trunk.make_state(capacity, cache);
  if (!state) return state.error();
  const int max_rows = std::max(std::min(prompt_tokens, kPrefillRows), max_depth + 1);
  auto workspace = trunk.make_workspace(max_rows, max_depth + 1);
  if (!workspace) return workspace.error();

  Sequence seq{.trunk = &trunk,
               .state = std::move(*state),
               .workspace = std::move(*workspace),
               .block = Block(max_rows),
               .guesses = std::vector<Draft>(max_depth),
               .emitted = {},
               .pending = -1,
               .budget = budget};
  seq.emitted.reserve(max_depth + 1);
  return seq;
}

Result<bool> run_prefill(Sequence& seq, std::span<const TokenId> prompt, Drafter& drafter,
                         const AcceptRule& rule, TokenSink& sink) {
  check(!prompt.empty() && seq.state->length() == 0, "a prefill starts an empty sequence");
  for (size_t first = 0;;) {
    const size_t rows = std::min<size_t>(prompt.size() - first, kPrefillRows);
    const bool last = first + rows == prompt.size();
    seq.block.reset(static_cast<int>(first));
    for (const TokenId token : prompt.subspan(first, rows)) seq.block.add(token);

    const TrunkOut out = seq.trunk->forward(
        seq.block, *seq.state, last ? LogitRows::Last : LogitRows::None, *seq.workspace);
    seq.state->commit(static_cast<int>(rows));
    const int with_next = static_cast<int>(last ? rows - 1 : rows);  // rows followed by the prompt
    drafter.prefill(prompt.subspan(first + 1, with_next), out.hidden.top(with_next));
    first += rows;
    if (!last) continue;

    const auto accepted = rule.accept({}, out.logits, static_cast<int>(first) - 1);
    if (!accepted) return accepted.error();
    seq.pending = accepted->next;
    --seq.budget;
    const bool goes_on = sink.emit({.id = seq.pending}, out.logits.row(0));
    drafter.observe({&seq.pending, 1}, out.hidden.middle(with_next, 1));
    return goes_on;
  }
}

}  // namespace paceline
