#include <algorithm>
#include <chrono>

#include "engine/generation_state.h"
#include "engine/logprobs.h"
#include "kernels/argmax.h"

namespace paceline {
namespace {

const GreedyRule greedy_rule(argmax);

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::None:
      return "none";
    case FinishReason::Stop:
      return "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::Interrupted:
      return "interrupted";
  }
  return "unknown";
}

Generation::State::State(Request request_, Sequence seq_, std::unique_ptr<Drafter> drafter_,
                         const char* name, std::span<const TokenId> end_ids_,
                         const Tokenizer* tokenizer)
    : request(std::move(request_)),
      end_ids(end_ids_),
      drafter_name(name),
      budget(seq_.budget),
      seq(std::move(seq_)),
      drafter(std::move(drafter_)),
      stops(request.stop) {
  if (tokenizer != nullptr) decoder.emplace(*tokenizer);
  const int limit = static_cast<int>(seq.guesses.size());
  stats.prompt_tokens = static_cast<int>(request.prompt.size());
  stats.depth_limit = limit;
  stats.drafted_by_depth.assign(limit, 0);
  stats.accepted_by_depth.assign(limit, 0);
  stats.accepted_by_source.assign(kDraftSources, 0);
  tokens.reserve(budget);
  if (request.logprobs >= 0) logprobs.reserve(budget);
  pieces_.reserve(limit + 2);
  views_.reserve(limit + 2);
}

Result<void> Generation::State::step() {
  pieces_.clear();
  if (done) return {};
  auto stepped = prefilled ? round() : prefill();
  if (!stepped) done = true;
  return stepped;
}

Result<void> Generation::State::prefill() {
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = run_prefill(seq, request.prompt, *drafter, greedy_rule, *this);
  stats.prefill_seconds = seconds_since(start);
  prefilled = true;
  if (!goes_on) return goes_on.error();
  return {};
}

Result<void> Generation::State::round() {
  const auto start = std::chrono::steady_clock::now();
  const auto round = run_round(seq, *drafter, depth, greedy_rule, *this);
  if (!round) return round.error();
  ++stats.rounds;
  stats.round_tokens += round->n_emitted;
  stats.proposed += round->n_proposed;
  for (int d = 0; d < round->n_drafted; ++d) ++stats.drafted_by_depth[d];
  for (int d = 0; d < round->n_accepted; ++d) ++stats.accepted_by_depth[d];
  stats.draft_seconds += round->draft_seconds;
  stats.verify_seconds += round->verify_seconds;
  stats.other_seconds += seconds_since(start) - round->draft_seconds - round->verify_seconds;
  return {};
}

bool Generation::State::emit(const EmittedToken& token, std::span<const float> logits) {
  tokens.push_back(token);
  if (token.depth > 0) ++stats.accepted_by_source[static_cast<int>(token.source)];
  if (request.logprobs >= 0) {
    logprobs.push_back(log_probabilities(logits, token.id, request.logprobs));
  }
  const bool is_end = std::binary_search(end_ids.begin(), end_ids.end(), token.id);
  if (decoder && !is_end) {  // an end token is no text, whether it ends or not
    decoder->add(token.id, decoded);
    release(stops.scan(decoded), token);
  }
  if ((is_end && !request.ignore_eos) || stops.stopped()) {
    finish(FinishReason::Stop, token);
  } else if (static_cast<int>(tokens.size()) == budget) {
    finish(FinishReason::Length, token);
  }
  return !done;
}

// Text up to byte `certain` of what was decoded is certain now.
void Generation::State::release(size_t certain, const EmittedToken& token) {
  if (certain <= text.size()) return;
  pieces_.push_back({.begin = text.size(), .end = certain, .token = token});
  text.append(decoded, text.size(), certain - text.size());
}

void Generation::State::finish(FinishReason why, const EmittedToken& token) {
  done = true;
  reason = why;
  if (!decoder || stops.stopped()) return;
  decoder->finish(decoded);
  const size_t certain = stops.scan(decoded);  // the last character may complete a stop string
  if (stops.stopped() && why == FinishReason::Length) reason = FinishReason::Stop;
  release(stops.stopped() ? certain : decoded.size(), token);
}

void Generation::State::interrupt() {
  pieces_.clear();
  if (!done) finish(FinishReason::Interrupted, tokens.empty() ? EmittedToken{} : tokens.back());
}

std::span<const TextPiece> Generation::State::take_pieces() {
  views_.clear();
  for (const Piece& piece : pieces_) {
    const auto view = std::string_view(text).substr(piece.begin, piece.end - piece.begin);
    views_.push_back({.text = view, .token = piece.token});
  }
  return views_;
}

Generation::Generation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

Result<std::span<const TextPiece>> Generation::step() {
  if (auto stepped = state_->step(); !stepped) return stepped.error();
  return state_->take_pieces();
}
std::span<const TextPiece> Generation::interrupt() {
  state_->interrupt();
  return state_->take_pieces();
}
bool Generation::done() const { return state_->done; }
FinishReason Generation::finish_reason() const { return state_->reason; }
const std::vector<EmittedToken>& Generation::tokens() const { return state_->tokens; }
const std::string& Generation::text() const { return state_->text; }
const std::vector<TokenLogprob>& Generation::logprobs() const { return state_->logprobs; }
const GenerationStats& Generation::stats() const { return state_->stats; }
const char* Generation::drafter() const { return state_->drafter_name; }

}  // namespace paceline
