// From a request to a generation that is ready to run, with all its memory taken.
#include <algorithm>

#include "engine/engine_state.h"
#include "engine/generation_state.h"
#include "engine/request.h"
#include "kernels/argmax.h"
#include "spec/head_drafter.h"
#include "spec/lookup.h"
#include "spec/sampling.h"
#include "spec/scripted.h"
#include "spec/union.h"

namespace paceline {
namespace {

constexpr size_t kMostReservedText = size_t{16} << 20;  // bytes; text beyond it grows as it comes

// A policy learns what the shortest matches are worth. At a fixed depth nobody does: a single token
// seen before says too little (on prose it cost a quarter of the speed), so lookup stays silent.
constexpr int kLeastMatchWithoutPolicy = 2;

const char* name_of(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::Lookup:
      return to_string(DraftSource::Lookup);
    case DrafterKind::Scripted:
      return to_string(DraftSource::Scripted);
    case DrafterKind::Mtp:
      return to_string(DraftSource::Mtp);
    case DrafterKind::Union:
      return "union";
    default:
      return "none";
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
Result<Begun> Engine::State::begin_sequence(const Request& request, int budget, bool with_head) {
  const std::span<const TokenId> prompt = request.prompt;
  const int capacity = static_cast<int>(prompt.size()) + budget - 1;
  const bool reads_anew = wide || (gate && gate->verdict == Verdict::Inexact);
  Begun begun;
  if (request.beginning != nullptr && !with_head && !reads_anew) {
    const SequenceState& state = request.beginning->state();
    auto forked = state.fork(capacity, state.length());
    if (!forked) return forked.error();
    begun.trunk = std::move(*forked);
    return begun;
  }
  const auto match =
      prefixes.find(prompt.first(prompt.size() - 1), with_head ? head->info().config.modules : 0);
  if (match.state != nullptr && !reads_anew && request.row_sink == nullptr) {
    auto forked = match.state->fork(capacity, match.length);
    if (!forked) return forked.error();
    begun.trunk = std::move(*forked);
    if (!with_head) return begun;
    // Both go on at one place, which is the last that both can share, or begin anew.
    auto rows = match.head->fork(capacity + 1, begun.trunk->length());
    if (!rows) return rows.error();
    begun.head = std::move(*rows);
    if (const int shared = begun.head->length(0); shared < begun.trunk->length()) {
      forked = match.state->fork(capacity, shared);
      if (!forked) return forked.error();
      begun.trunk = std::move(*forked);
    }
    if (begun.trunk->length() == begun.head->length(0)) return begun;
  }
  auto made = model->make_state(capacity, cache);
  if (!made) return made.error();
  return Begun{std::move(*made), nullptr};
}

RequestLimits Engine::State::limits() const {
  return {.vocab_size = model->info().vocab_size,
          .context = context,
          .has_tokenizer = tokenizer != nullptr,
          .no_head = no_head};
}

DrafterKind Engine::State::drafter_for(const Request& request) const {
  if (request.depth == 0) return DrafterKind::None;
  if (request.drafter != DrafterKind::Auto) return request.drafter;
  return head != nullptr || store.store != nullptr ? DrafterKind::Union : DrafterKind::Lookup;
}

bool Engine::State::has_head_in(DrafterKind kind) const {
  return head != nullptr && (kind == DrafterKind::Mtp || kind == DrafterKind::Union);
}

Result<std::unique_ptr<HeadDrafter>> Engine::State::make_head_drafter(
    std::unique_ptr<HeadState> begun, int capacity) const {
  auto drafter = std::make_unique<HeadDrafter>(*head, *head_workspace, cache);
  if (auto reserved = drafter->reserve(capacity, std::move(begun)); !reserved)
    return reserved.error();
  return drafter;
}

Result<MadeDrafter> Engine::State::make_drafter(DrafterKind kind, const Request& request,
                                                const DraftPermit* permit,
                                                std::unique_ptr<HeadState> begun,
                                                int capacity) const {
  if (permit == nullptr) return MadeDrafter{std::make_unique<SilentDrafter>()};
  std::unique_ptr<HeadDrafter> head_drafter;
  if (has_head_in(kind)) {
    auto made = make_head_drafter(std::move(begun), capacity);
    if (!made) return made.error();
    head_drafter = std::move(*made);
  }
  HeadDrafter* const with_head = head_drafter.get();
  const bool grows = depth_for(request, kind).nodes > 0;
  switch (kind) {
    case DrafterKind::Lookup:
      if (grows) return MadeDrafter{std::make_unique<UnionDrafter>(UnionSources{})};
      return MadeDrafter{std::make_unique<LookupDrafter>(
          LookupOptions{.min_match = request.depth == kAutoDepth ? 1 : kLeastMatchWithoutPolicy})};
    case DrafterKind::Scripted:
      return MadeDrafter{std::make_unique<ScriptedDrafter>(request.script)};
    case DrafterKind::Mtp:
      if (!grows) return MadeDrafter{std::move(head_drafter), with_head};
      return MadeDrafter{std::make_unique<UnionDrafter>(
                             UnionSources{.own_text = false, .head = std::move(head_drafter)}),
                         with_head};
    case DrafterKind::Union:
      return MadeDrafter{std::make_unique<UnionDrafter>(
                             UnionSources{.store = store.store, .head = std::move(head_drafter)}),
                         with_head};
    default:
      return MadeDrafter{std::make_unique<SilentDrafter>()};
  }
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

Result<std::shared_ptr<const Beginning>> Engine::read_beginning(
    std::span<const TokenId> ids) const {
  if (auto checked = check_beginning(ids, state_->limits()); !checked) return checked.error();
  if (auto taken = state_->take_pass_memory(); !taken) return taken.error();
  return Beginning::read(*state_->model, state_->cache, *state_->workspace, ids);
}

Result<Generation> Engine::start(const Request& request) const {
  const RequestLimits limits = state_->limits();
  if (auto checked = check_request(request, limits); !checked) return checked.error();

  const int n_prompt = static_cast<int>(request.prompt.size());
  const int budget = std::min(request.max_tokens, state_->context - n_prompt);
  if (auto taken = state_->take_pass_memory(); !taken) return taken.error();
  const DrafterKind asked = state_->drafter_for(request);
  const DraftPermit* permit = nullptr;
  if (asked != DrafterKind::None)
    permit = request.allow_inexact ? Gate::overruled() : Gate::permit(gate());
  const DrafterKind kind = permit == nullptr ? DrafterKind::None : asked;
  auto begun = state_->begin_sequence(request, budget, state_->has_head_in(kind));
  if (!begun) return begun.error();
  auto made =
      state_->make_drafter(kind, request, permit, std::move(begun->head), n_prompt + budget);
  if (!made) return made.error();
  made->drafter->begin(request.prompt, n_prompt + budget);
  const Depth depth = depth_for(request, kind);
  auto rule = make_rule(request.sampling, limits.vocab_size, *state_->table);
  rule->begin(request.prompt, n_prompt + budget);

  auto state = std::make_unique<Generation::State>(
      request, *state_,
      make_sequence(std::move(begun->trunk), budget, depth.most_drafts(),
                    state_->model->info().dim),
      std::move(rule), std::move(made->drafter), name_of(kind));
  state->head_drafter = made->head;
  state->declined = kind != asked;
  state->depth = depth;
  state->stats.begin(depth.limit);
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
