#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/check.h"
#include "base/threads.h"
#include "base/version.h"
#include "engine/costs.h"
#include "engine/end_ids.h"
#include "engine/engine_state.h"
#include "engine/head_search.h"
#include "engine/open_text.h"
#include "engine/trunk_store.h"
#include "io/checkpoint.h"
#include "io/shown.h"
#include "io/weight_file.h"
#include "models/head_check.h"
#include "spec/head_drafter.h"

namespace paceline {
namespace {

Result<int> choose_context(int asked, const ModelInfo& info, const std::string& name) {
  if (asked < 0) {
    return Error{
        ErrorCode::BadUsage,
        fmt::format("the context should be at least 1 token, but {} was asked for", asked)};
  }
  if (asked > info.context_length) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("a context of {} tokens was asked for, but {} was made for {}", asked,
                             name, info.context_length)};
  }
  return asked == 0 ? info.context_length : asked;
}

// A state for the whole context is made and given back, so that one that cannot fit is refused
// before anything runs.
Result<void> check_cache_fits(const Model& model, int context, CacheType cache) {
  const auto state = model.make_state(context, cache);
  if (!state) return state.error();
  return {};
}

// make() starts threads.
template <class Make>
auto with_threads(int threads, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::system_error& error) {
    return Error{ErrorCode::TooLarge,
                 fmt::format("cannot start {} threads: {}", threads, error.code().message())};
  }
}

Error no_tokenizer(const std::filesystem::path& path) {
  const std::string name = path.empty() ? "the model" : path.string();
  return {ErrorCode::BadUsage,
          name + " has no tokenizer, so text cannot be turned into tokens; give token ids instead"};
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {
  if (state_->tokenizer == nullptr) return;
  for (TokenId id = 0; id < state_->tokenizer->vocab_size(); ++id) {
    if (state_->tokenizer->is_special(id)) continue;
    const size_t length = state_->tokenizer->bytes(id).size();
    if (length <= state_->longest_token) continue;
    state_->longest_token = length;
    state_->longest_token_id = id;
  }
}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Result<Engine> Engine::open(const std::filesystem::path& path, const EngineOptions& options) {
  if (options.threads < 0) {
    return Error{
        ErrorCode::BadUsage,
        fmt::format("at least one thread is needed, but {} were asked for", options.threads)};
  }
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) return checkpoint.error();

  auto state = std::make_unique<State>();
  state->path = path;
  state->threads = options.threads > 0 ? options.threads : available_cpus();
  state->weights = options.weights;
  state->wide = options.wide_kernels;
  state->cache =
      options.cache.value_or(options.weights == WeightsType::F32 ? CacheType::F32 : CacheType::F16);
  const auto warnings = checkpoint->warnings();
  state->warnings.assign(warnings.begin(), warnings.end());

  auto tokenizer = open_tokenizer(*checkpoint);
  if (!tokenizer) return tokenizer.error();
  state->tokenizer = std::move(*tokenizer);
  if (state->tokenizer != nullptr) {
    auto chat_template = open_chat_template(*checkpoint, *state->tokenizer);
    if (!chat_template) return chat_template.error();
    if (*chat_template)
      state->chat_template = std::make_shared<const ChatTemplate>(*std::move(*chat_template));
  }

  auto model = with_threads(state->threads, [&] {
    return load_model(*checkpoint, {.weights = options.weights,
                                    .threads = state->threads,
                                    .wide = options.wide_kernels,
                                    .numerics = options.numerics,
                                    .progress = options.progress});
  });
  if (!model) return model.error();
  state->model = std::move(*model);
  const ModelInfo& info = state->model->info();
  if (state->tokenizer != nullptr && state->tokenizer->vocab_size() > info.vocab_size) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: the tokenizer has {} tokens, but the output matrix only {} rows",
                             path.string(), state->tokenizer->vocab_size(), info.vocab_size)};
  }

  const auto context = choose_context(options.context, info, path.string());
  if (!context) return context.error();
  state->context = *context;
  if (auto fits = check_cache_fits(*state->model, *context, state->cache); !fits) {
    return fits.error();
  }
  auto end_ids = read_end_ids(*checkpoint, state->tokenizer.get(), info.vocab_size);
  if (!end_ids) return end_ids.error();
  state->end_ids = std::move(*end_ids);
  if (options.use_head) {
    if (auto taken = state->open_head(*checkpoint, options.head); !taken) return taken.error();
  }
  if (options.use_store || options.learn) {
    auto found = open_trunk_store(*checkpoint, info.vocab_size, options.store, options.learn,
                                  state->warnings);
    if (!found) return found.error();
    state->store = {std::move(found->file), std::move(found->store)};
    state->learner = std::move(found->learner);
    state->learner_file = std::move(found->learner_file);
  }
  return Engine(std::move(state));
}

// One that was found, not asked for, and does not fit is left aside with a warning.
Result<void> Engine::State::open_head(const Checkpoint& checkpoint,
                                      const std::filesystem::path& asked) {
  HeadSearch search = find_head(checkpoint, asked);
  std::optional<Error> fault = search.fault;
  if (search.found) {
    const FoundHead& found = *search.found;
    const std::string name = shown_path(found.file);
    auto taken = take_head(found.tensors, {found.file, found.in_checkpoint, found.sha256, {}});
    if (taken) {
      warn_of_another_trunk(checkpoint, name);
      return {};
    }
    fault = Error{taken.error().code, fmt::format("{}: {}", name, taken.error().message)};
  }
  if (fault && !asked.empty()) return *fault;
  if (fault) {
    no_head = fault->message;
    warnings.push_back(fault->message + "; drafts come from elsewhere");
  } else {
    no_head = fmt::format(
        "no draft head was found for this model; looked at {}; name one with --head FILE, or put "
        "one there",
        fmt::join(search.places, ", "));
  }
  return {};
}

// A head that fits, but was trained for another model. Inside a checkpoint it goes with it.
void Engine::State::warn_of_another_trunk(const Checkpoint& checkpoint, const std::string& name) {
  const HeadConfig& config = head_in_use.info.config;
  if (!head_in_use.in_checkpoint && !config.trunk_sha256.empty()) {
    auto warning = another_trunk(config, checkpoint.trunk_sha256(), name);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  if (!config.family.empty() && config.family != model->info().family) {
    warnings.push_back(fmt::format("{} was trained for family {}, and this model is of family {}",
                                   name, config.family, model->info().family));
  }
}

Result<void> Engine::State::take_head(const HeadTensors& tensors, HeadInUse about) {
  auto made = model->make_head(tensors);
  if (!made) return made.error();
  auto memory = (*made)->make_workspace(HeadDrafter::kWorkspaceRows);
  if (!memory) return memory.error();
  head_in_use = std::move(about);
  head_in_use.info = (*made)->info();
  head = std::move(*made);
  head_workspace = std::move(*memory);
  no_head.clear();
  return {};
}

Result<Engine> Engine::with_model(std::unique_ptr<Model> model, int context, int threads,
                                  std::vector<TokenId> end_ids, CacheType cache,
                                  std::unique_ptr<Tokenizer> tokenizer) {
  check(model != nullptr, "an engine has a model");
  const auto chosen = choose_context(context, model->info(), "the model");
  if (!chosen) return chosen.error();
  if (auto fits = check_cache_fits(*model, *chosen, cache); !fits) return fits.error();
  std::sort(end_ids.begin(), end_ids.end());
  auto state = std::make_unique<State>();
  state->model = std::move(model);
  state->tokenizer = std::move(tokenizer);
  state->end_ids = std::move(end_ids);
  state->context = *chosen;
  state->threads = threads;
  state->cache = cache;
  return Engine(std::move(state));
}

Result<Engine> Engine::beside(int threads) const {
  check(threads >= 1, "an engine has a thread");
  const State& mine = *state_;
  auto model = with_threads(threads, [&] { return mine.model->beside(threads); });
  if (!model) return model.error();
  auto state = std::make_unique<State>();
  state->model = std::move(*model);
  if (mine.head != nullptr) {
    auto head = mine.head->beside(*state->model);
    if (!head) return head.error();
    auto memory = (*head)->make_workspace(HeadDrafter::kWorkspaceRows);
    if (!memory) return memory.error();
    state->head = std::move(*head);
    state->head_workspace = std::move(*memory);
  }
  state->head_in_use = mine.head_in_use;
  state->no_head = mine.no_head;
  state->store = mine.store;
  state->tokenizer = mine.tokenizer;
  state->chat_template = mine.chat_template;
  state->end_ids = mine.end_ids;
  state->path = mine.path;
  state->context = mine.context;
  state->threads = threads;
  state->cache = mine.cache;
  state->weights = mine.weights;
  state->wide = mine.wide;
  state->gate = mine.gate;
  return Engine(std::move(state));
}

const Model& Engine::model() const { return *state_->model; }
const Tokenizer* Engine::tokenizer() const { return state_->tokenizer.get(); }
const ChatTemplate* Engine::chat_template() const { return state_->chat_template.get(); }
std::span<const TokenId> Engine::end_ids() const { return state_->end_ids; }
std::span<const std::string> Engine::warnings() const { return state_->warnings; }
int Engine::context() const { return state_->context; }
int Engine::threads() const { return state_->threads; }
CacheType Engine::cache_type() const { return state_->cache; }
WeightsType Engine::weights() const { return state_->weights; }

const std::string& Engine::model_sha256() const {
  std::call_once(state_->sha256_once, [this] {
    if (state_->path.empty()) return;
    const auto checkpoint = Checkpoint::open(state_->path);
    if (checkpoint) state_->sha256 = checkpoint->trunk_sha256();
  });
  return state_->sha256;
}

const HeadInUse* Engine::head() const {
  return state_->head == nullptr ? nullptr : &state_->head_in_use;
}
const std::string& Engine::no_head() const { return state_->no_head; }
Result<void> Engine::use_head(const HeadTensors& head) { return state_->take_head(head, {}); }

const StoreInUse* Engine::store() const {
  return state_->store.store == nullptr ? nullptr : &state_->store;
}
void Engine::use_store(std::shared_ptr<const NgramStore> store) {
  state_->store = {{}, std::move(store)};
}
void Engine::learn(std::span<const TokenId> answer) const {
  if (state_->learner) state_->learner->add(answer);
}

Result<Learnt> Engine::save_learnt() const {
  State& state = *state_;
  Learnt learnt{.tokens = state.learner ? state.learner->n_tokens() : 0,
                .file = state.learner_file};
  if (learnt.tokens == 0) return learnt;
  std::error_code failure;  // where the folder cannot be made, the file says why
  if (learnt.file.has_parent_path())
    std::filesystem::create_directories(learnt.file.parent_path(), failure);
  if (auto saved = state.learner->save_into(learnt.file, state.store.store.get()); !saved)
    return saved.error();
  return learnt;
}

std::string Engine::gate_key() const {
  if (state_->path.empty()) return "";
  const ModelInfo& info = state_->model->info();
  const auto binary = open_weight_file("/proc/self/exe", "this program");
  return fmt::format(
      "model {} weights {} cache {} binary {} isa {} numerics {} threads {} kernels {}",
      model_sha256(), static_cast<int>(state_->weights), static_cast<int>(state_->cache),
      binary ? cached_sha256(*binary) : commit(), info.isa, info.numerics, state_->threads,
      state_->wide ? "wide" : "exact");
}

std::vector<TokenId> Engine::State::probe_ids() const {
  std::vector<TokenId> ids;
  if (tokenizer != nullptr) tokenizer->encode(probe_text(), /*read_specials=*/false, ids);
  if (ids.size() >= 2) return ids;
  ids.clear();
  for (int64_t i = 0; i < 512; ++i)
    ids.push_back(static_cast<TokenId>((i * 7919 + i * i % 31) % model->info().vocab_size));
  return ids;
}

const GateVerdict& Engine::gate(const std::function<bool()>& stop) const {
  // The walk has a state of its own: a verdict holds for every context that may be asked for.
  if (!state_->gate)
    state_->gate =
        Gate::decide(*state_->model, state_->probe_ids(), state_->model->info().context_length,
                     state_->cache, gate_key(), stop);
  return *state_->gate;
}

Result<ProbeResult> Engine::probe(const ProbeOptions& options) const {
  auto result =
      paceline::probe(*state_->model, state_->probe_ids(), state_->context, state_->cache, options);
  if (result && result->verdict != Verdict::NotRun) {
    Gate::remember(gate_key(), result->verdict, result->reason);
    if (!state_->gate || state_->gate->verdict != Verdict::Inexact)
      state_->gate = {result->verdict, result->reason, false, result->seconds};
  }
  return result;
}

const CostModel& Engine::costs() const {
  std::call_once(state_->costs_once, [this] {
    const State& mine = *state_;
    CostModel costs = measure_costs(*mine.model, mine.context, mine.cache).value_or(worst_costs());
    if (mine.head != nullptr)
      costs.head = measure_head(*mine.model, *mine.head, mine.context, mine.cache)
                       .value_or(worst_costs().head);
    state_->costs.emplace(costs);
  });
  return state_->costs->costs();
}

Result<std::vector<TokenId>> Engine::encode_chat(std::span<const ChatMessage> messages) const {
  if (tokenizer() == nullptr) return no_tokenizer(state_->path);
  if (chat_template() == nullptr) {
    return Error{ErrorCode::BadUsage,
                 "the model has no chat template; give the prompt as plain text instead"};
  }
  return chat_template()->encode(messages, /*add_generation_prompt=*/true, *tokenizer());
}

Result<std::vector<TokenId>> Engine::encode_text(std::string_view text) const {
  if (tokenizer() == nullptr) return no_tokenizer(state_->path);
  std::vector<TokenId> ids;
  if (const auto bos = tokenizer()->bos(); tokenizer()->adds_bos() && bos) ids.push_back(*bos);
  tokenizer()->encode(text, /*read_specials=*/false, ids);
  return ids;
}

std::string Engine::decode(std::span<const TokenId> ids) const {
  return tokenizer() == nullptr ? std::string() : paceline::decode(*tokenizer(), ids);
}

}  // namespace paceline
