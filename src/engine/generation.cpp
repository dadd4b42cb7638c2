#include <algorithm>
#include <chrono>
#include <limits>

#include "engine/generation_state.h"
#include "engine/logprobs.h"
#include "kernels/argmax.h"
#include "kernels/top_logits.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

Generation::State::State(Request request_, Engine::State& engine_, Sequence seq_,
                         std::unique_ptr<AcceptRule> rule_, std::unique_ptr<Drafter> drafter_,
                         const char* name)
    : request(std::move(request_)),
      engine(engine_),
      drafter_name(name),
      budget(seq_.budget),
      seq(std::move(seq_)),
      rule(std::move(rule_)),
      drafter(std::move(drafter_)),
      stops(request.stop) {
  if (engine.tokenizer != nullptr) decoder.emplace(*engine.tokenizer);
  const int limit = static_cast<int>(seq.guesses.size());
  stats.prompt_tokens = static_cast<int>(request.prompt.size());
  stats.reused_tokens = seq.state->length();
  tokens.reserve(budget);
  if (request.logprobs >= 0) logprobs.reserve(budget);
  if (request.gaps) {
    gaps.reserve(budget);
    top_two_.reserve(3);
  }
  pieces_.reserve(limit + 2);
  views_.reserve(limit + 2);
}

PassPart Generation::State::open() {
  const auto start = Clock::now();
  LogitRows rows = LogitRows::All;
  if (prefilled)
    round_ = open_round(seq, *drafter, depth);
  else
    rows = open_chunk(seq, request.prompt);
  open_seconds_ = seconds_since(start);
  return {.block = &seq.block, .state = seq.state.get(), .logit_rows = rows};
}

void Generation::State::close(const TrunkOut& out, double pass_seconds) {
  auto closed = prefilled ? close_round(out, pass_seconds) : close_prompt(out, pass_seconds);
  if (!closed) {
    done = true;
    error = closed.error();
  }
}

Result<void> Generation::State::close_prompt(const TrunkOut& out, double pass_seconds) {
  const auto start = Clock::now();
  const int first = seq.block.first_pos();
  const auto progress = close_chunk(seq, request.prompt, out, *drafter, *rule, *this);
  stats.prefill_seconds += open_seconds_ + pass_seconds + seconds_since(start);
  if (!progress) return progress.error();
  prefilled = *progress != Progress::Prompt;
  if (request.row_sink != nullptr) {
    if (first == stats.reused_tokens && first > 0) sink_beginning(first);
    sink_chunk(first, out);
  }
  if (prefilled) keep_prefix();
  return {};
}

Result<void> Generation::State::close_round(const TrunkOut& out, double pass_seconds) {
  const auto start = Clock::now();
  const auto round = paceline::close_round(seq, round_, out, *drafter, depth, *rule, *this);
  if (!round) return round.error();
  stats.add(*round, round_.drafts);
  if (request.row_sink != nullptr) {
    if (round->n_drafted > 0)
      request.row_sink->drafted(round_.drafts.first(round->n_drafted), round->n_accepted);
    request.row_sink->rows(seq.emitted, out.at(request.row_sink->tap()).top(round->n_emitted));
  }
  stats.draft_seconds += round->draft_seconds;
  stats.verify_seconds += pass_seconds;
  stats.other_seconds += open_seconds_ - round->draft_seconds + seconds_since(start);
  return {};
}

// Those rows of the beginning that were taken over.
void Generation::State::sink_beginning(int rows) {
  RowSink& sink = *request.row_sink;
  sink.rows(std::span(request.prompt).subspan(1, rows),
            request.beginning->hiddens(sink.tap()).top(rows));
}

// The prompt's rows are followed by the prompt, the last one by the first token of the output.
void Generation::State::sink_chunk(int first, const TrunkOut& out) {
  const int with_next = prefilled ? seq.block.rows() - 1 : seq.block.rows();
  const auto next = std::span(request.prompt).subspan(first + 1, with_next);
  const Mat<const float> hidden = out.at(request.row_sink->tap());
  request.row_sink->rows(next, hidden.top(with_next));
  if (prefilled) request.row_sink->rows({&seq.pending, 1}, hidden.middle(with_next, 1));
}

Generation::State::~State() {
  if (prefilled && !error) keep_prefix();  // here rather than in the last round, since it allocates
}

// For later requests that begin with this text.
void Generation::State::keep_prefix() {
  if (request.row_sink != nullptr)
    return;  // whoever records goes from text to text and takes none over
  std::vector<TokenId> whole = request.prompt;
  whole.reserve(whole.size() + tokens.size());
  for (const EmittedToken& token : tokens) whole.push_back(token.id);
  if (head_drafter == nullptr) return engine.prefixes.keep(whole, *seq.state);
  engine.prefixes.keep(whole, *seq.state, &head_drafter->settled(), head_drafter->settled_length());
}

bool Generation::State::emit(const EmittedToken& token, std::span<const float> logits) {
  tokens.push_back(token);
  if (request.logprobs >= 0) {
    logprobs.push_back(log_probabilities(logits, token.id, request.logprobs));
  }
  if (request.row_sink != nullptr) {
    const bool greedy = request.sampling.is_greedy();  // then it is, without looking
    request.row_sink->chosen(token.id, greedy || argmax(logits) == token.id);
  }
  if (request.gaps) add_gap(token, logits);
  const bool is_end = std::binary_search(engine.end_ids.begin(), engine.end_ids.end(), token.id);
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

void Generation::State::add_gap(const EmittedToken& token, std::span<const float> logits) {
  top_logits(logits, 2, top_two_);
  const bool alone = top_two_.size() < 2;
  constexpr float kLargest = std::numeric_limits<float>::max();
  gaps.push_back({.position = stats.prompt_tokens + static_cast<int>(tokens.size()) - 2,
                  .token = token.id,
                  .top1 = top_two_.empty() ? -1 : top_two_[0].first,
                  .top2 = alone ? -1 : top_two_[1].first,
                  .gap = alone ? kLargest : top_two_[0].second - top_two_[1].second,
                  .ends_round = token.depth == 0});
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
  if (done) return;
  finish(FinishReason::Interrupted, tokens.empty() ? EmittedToken{} : tokens.back());
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
  Generation* self = this;
  step_together({&self, 1});
  if (state_->error) return *state_->error;
  return pieces();
}
std::span<const TextPiece> Generation::pieces() const { return state_->take_pieces(); }
const std::optional<Error>& Generation::error() const { return state_->error; }
std::span<const TextPiece> Generation::interrupt() {
  state_->interrupt();
  return state_->take_pieces();
}
bool Generation::done() const { return state_->done; }
FinishReason Generation::finish_reason() const { return state_->reason; }
const std::vector<EmittedToken>& Generation::tokens() const { return state_->tokens; }
const std::string& Generation::text() const { return state_->text; }
const std::vector<TokenLogprob>& Generation::logprobs() const { return state_->logprobs; }
const std::vector<TokenGap>& Generation::gaps() const { return state_->gaps; }
const GenerationStats& Generation::stats() const { return state_->stats; }
const char* Generation::drafter() const { return state_->drafter_name; }
bool Generation::declined() const { return state_->declined; }

}  // namespace paceline
