// From a request to a generation that is ready to run, with all its memory taken.
#include <algorithm>

#include "engine/engine_state.h"
#include "engine/generation_state.h"
#include "engine/request.h"
#include "kernels/argmax.h"
#include "spec/lookup.h"
#include "spec/sampling.h"
#include "spec/scripted.h"

namespace paceline {
namespace {

constexpr size_t kMostReservedText = size_t{16} << 20;  // bytes; text beyond it grows as it comes

// A policy learns what the shortest matches are worth. At a fixed depth nobody does: a single token
// seen before says too little (on prose it cost a quarter of the speed), so lookup stays silent.
constexpr int kLeastMatchWithoutPolicy = 2;

DrafterKind choose_drafter(const Request& request) {
  if (request.depth == 0) return DrafterKind::None;
  return request.drafter == DrafterKind::Auto ? DrafterKind::Lookup : request.drafter;
}

const char* name_of(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::Lookup:
      return to_string(DraftSource::Lookup);
    case DrafterKind::Scripted:
      return to_string(DraftSource::Scripted);
    default:
      return "none";
  }
}

// Whoever drafts has a permit: without one the drafter is silent and the run plain.
std::unique_ptr<Drafter> make_drafter(DrafterKind kind, const Request& request,
                                      const DraftPermit* permit) {
  if (permit == nullptr) return std::make_unique<SilentDrafter>();
  switch (kind) {
    case DrafterKind::Lookup:
      return std::make_unique<LookupDrafter>(
          LookupOptions{.min_match = request.depth == kAutoDepth ? 1 : kLeastMatchWithoutPolicy});
    case DrafterKind::Scripted:
      return std::make_unique<ScriptedDrafter>(request.script);
    default:
      return std::make_unique<SilentDrafter>();
  }
}

std::unique_ptr<AcceptRule> make_rule(const SamplingOptions& sampling, int vocab_size,
                                      const KernelTable& table) {
  if (sampling.is_greedy()) return std::make_unique<GreedyRule>(argmax);
  return std::make_unique<SampledRule>(sampling, vocab_size, table);
}

}  // namespace

// The last token of the prompt is always read: the text goes on from its logits. What was read in
// other blocks serves where blocks are known not to matter.
Result<std::unique_ptr<SequenceState>> Engine::State::make_sequence_state(
    std::span<const TokenId> prompt, int budget, bool from_start) {
  const int capacity = static_cast<int>(prompt.size()) + budget - 1;
  if (from_start) return model->make_state(capacity, cache);
  const bool inexact = wide || (gate && gate->verdict == Verdict::Inexact);
  const auto match = prefixes.find(prompt.first(prompt.size() - 1));
  if (match.state != nullptr && !inexact) return match.state->fork(capacity, match.length);
  return model->make_state(capacity, cache);
}

Result<void> Engine::State::take_pass_memory() {
  if (workspace != nullptr) return {};
  auto made = model->make_workspace(kPassRows, kPassRows);
  if (!made) return made.error();
  workspace = std::move(*made);
  parts.reserve(kPassRows);
  members.reserve(kPassRows);
  return {};
}

Result<Generation> Engine::start(const Request& request) const {
  const RequestLimits limits = {.vocab_size = state_->model->info().vocab_size,
                                .context = state_->context,
                                .has_tokenizer = state_->tokenizer != nullptr};
  if (auto checked = check_request(request, limits); !checked) return checked.error();

  const int n_prompt = static_cast<int>(request.prompt.size());
  const int budget = std::min(request.max_tokens, state_->context - n_prompt);
  const int depth = request.depth == kAutoDepth ? kMaxDepth : request.depth;
  if (auto taken = state_->take_pass_memory(); !taken) return taken.error();
  auto sequence_state = state_->make_sequence_state(request.prompt, budget, request.tap != nullptr);
  if (!sequence_state) return sequence_state.error();

  const DrafterKind asked = choose_drafter(request);
  const DraftPermit* permit = nullptr;
  if (asked != DrafterKind::None)
    permit = request.allow_inexact ? Gate::overruled() : Gate::permit(gate());
  const DrafterKind kind = permit == nullptr ? DrafterKind::None : asked;
  auto drafter = make_drafter(kind, request, permit);
  drafter->begin(request.prompt, n_prompt + budget);
  auto rule = make_rule(request.sampling, limits.vocab_size, *state_->table);
  rule->begin(request.prompt, n_prompt + budget);

  auto state = std::make_unique<Generation::State>(
      request, *state_, make_sequence(std::move(*sequence_state), budget, depth), std::move(rule),
      std::move(drafter), name_of(kind));
  state->declined = kind != asked;
  state->depth = {.limit = depth};
  if (request.depth == kAutoDepth && kind != DrafterKind::None) {
    state->depth.policy = &state->policy;
    state->depth.costs = &costs();
  }
  if (state->decoder && state_->longest_token > 0) {
    // A byte that is no character becomes the three bytes of U+FFFD.
    const size_t longest = 3 * state_->longest_token * static_cast<size_t>(budget);
    state->decoded.reserve(std::min(longest, kMostReservedText));
    state->text.reserve(std::min(longest, kMostReservedText));
    // The decoder's own buffer grows to the longest token now rather than in a round.
    state->decoder->add(state_->longest_token_id, state->decoded);
    state->decoder->finish(state->decoded);
    state->decoded.clear();
  }
  return Generation(std::move(state));
}

}  // namespace paceline
