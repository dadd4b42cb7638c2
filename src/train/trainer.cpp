#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "base/version.h"
#include "fmt/format.h"
#include "io/shown.h"
#include "train/draft_check.h"
#include "train/run_settings.h"
#include "train/run_state.h"
#include "train/trunk_side.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kEvaluations = 16;    // a run, unless told otherwise
constexpr int kHeldOutRows = 4096;  // whose loss is computed at each of them
constexpr int kMostNotFinite = 3;   // steps in a row
constexpr int64_t kFewPositions = 50'000;
constexpr double kMemorising = 0.15;   // hits in training above those held out
constexpr double kMostDistance = 0.2;  // of training from serving; rounding gives a tenth of it

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Run {
 public:
  Run(const TrainInputs& inputs, const TrainOptions& options, const TrainHooks& hooks,
      const TrunkSide& trunk, const Tools& tools)
      : in_(inputs),
        o_(options),
        hooks_(hooks),
        tools_(tools),
        config_(config_for(inputs, options)),
        layout_(frozen_layout(trunk, inputs, options)),
        shape_(trunk.net_shape(config_, options.depths, options.mask, max_rows(inputs))),
        weights_(values_of(inputs.start, layout_)),
        best_(weights_),
        gradient_(layout_.size()),
        net_(shape_, layout_, tools),
        optimiser_(layout_, options.optimiser),
        words_(trunk.output_rows(config_.draft_vocabulary)),
        vocabulary_(
            {words_.data(), static_cast<int>(std::ssize(words_) / trunk.dim()), trunk.dim()},
            tools),
        builder_(*inputs.data, trunk, config_.tap, config_.draft_vocabulary, options.targets,
                 options.depths),
        order_(static_cast<int>(std::ssize(inputs.data->training())), options.batch, options.seed),
        plan_(plan_evaluation(*inputs.data, options.evaluation_tokens, options.depths,
                              options.cache)),
        sums_(options.depths) {
    words_.clear();
    words_.shrink_to_fit();
  }

  Result<TrainReport> run();

 private:
  static HeadConfig config_for(const TrainInputs& inputs, const TrainOptions& options) {
    HeadConfig config = inputs.start.config;
    config.depths = options.depths;
    config.trainer = fmt::format("paceline {} {}", version(), commit());
    return config;
  }
  static Layout frozen_layout(const TrunkSide& trunk, const TrainInputs& inputs,
                              const TrainOptions& options) {
    Layout layout = trunk.layout(inputs.start.config.modules);
    for (const Part part : options.freeze) layout.freeze(part);
    return layout;
  }
  static int max_rows(const TrainInputs& inputs) {
    int rows = 1;
    for (const auto pieces : {inputs.data->training(), inputs.data->held_out()})
      for (const Piece& piece : pieces) rows = std::max(rows, piece.rows);
    return rows;
  }

  double elapsed() const { return seconds_before_ + seconds_since(start_); }
  double share() const {
    double share = 0;
    if (o_.steps > 0) share = static_cast<double>(step_) / static_cast<double>(o_.steps);
    if (o_.minutes > 0) share = std::max(share, elapsed() / (60 * o_.minutes));
    return share;
  }
  int depths_at(double at) const { return at < o_.first_depth_share ? 1 : o_.depths; }
  // Depth 1 alone comes first, and says nothing of whether the run still gets anywhere.
  bool is_last_task(double at) const {
    return at >= o_.first_depth_share || o_.first_depth_share >= 1;
  }
  bool stopped() const { return hooks_.stop && hooks_.stop(); }
  void warn(const std::string& text) const {
    if (hooks_.warn) hooks_.warn(text);
  }
  fs::path state_file() const { return state_file_of(in_); }

  Result<void> begin();
  Result<void> check_start();
  Result<void> check_drafts();
  Result<void> check_training();
  Result<void> resume();
  Result<void> save() const;

  // Adds the loss of some pieces to `sums`; with gradients or without. Rows with a target.
  int64_t pass(std::span<const Piece> pieces, int depths, int pieces_of_step, bool back,
               std::span<LossSums> sums);
  bool step(int depths);
  Result<void> evaluate_now(double at);
  Result<TrainEnd> go_on();
  HeadTensors head_now() const { return head_of(config_, layout_, optimiser_.averaged(weights_)); }
  void held_out(HistoryEntry& entry);
  void report_progress(double at) const;

  const TrainInputs& in_;
  const TrainOptions& o_;
  const TrainHooks& hooks_;
  Tools tools_;
  HeadConfig config_;
  Layout layout_;
  NetShape shape_;
  std::vector<float> weights_, best_, gradient_;
  HeadNet net_;
  Optimiser optimiser_;
  std::vector<float> words_;
  VocabularyLoss vocabulary_;
  BatchBuilder builder_;
  PieceOrder order_;
  EvaluationPlan plan_;

  TrainReport report_;
  Clock::time_point start_ = Clock::now();
  double seconds_before_ = 0;
  int64_t step_ = 0;
  int flat_ = 0;
  int not_finite_ = 0;
  bool evaluation_is_due_ = true;
  bool warned_of_memorising_ = false;
  bool improved_ = false;
  std::optional<Evaluation> start_evaluation_;  // of the check before the first step
  std::vector<LossSums> sums_;                  // since the last evaluation
  double loss_steps_ = 0;                       // steps whose losses they hold
  double step_loss_ = 0;                        // smoothed
  double step_seconds_ = 0;                     // in steps alone, of this process
  int64_t step_positions_ = 0;
};

Result<void> Run::check_start() {
  auto memory = evaluate(*in_.model, head_now(), plan_, hooks_.stop);
  if (!memory) return memory.error();
  const fs::path file = in_.out.string() + ".start";
  if (auto written = write_head(file, head_now()); !written) return written;
  auto read = read_head(file);
  std::error_code ignored;
  fs::remove(file, ignored);
  if (!read) return read.error();
  auto replayed = evaluate(*in_.model, *read, plan_, hooks_.stop);
  if (!replayed) return replayed.error();
  if (memory->counts == replayed->counts) {
    start_evaluation_ = std::move(*memory);
    return check_drafts();
  }
  return Error{ErrorCode::BadFormat,
               fmt::format("before the first step, the rounds of the head in memory ({} of {} "
                           "accepted at depth 1) are not those of its file ({} of {}); nothing was "
                           "trained",
                           memory->counts.accepted_by_depth[0], memory->counts.rounds,
                           replayed->counts.accepted_by_depth[0], replayed->counts.rounds)};
}

Result<void> Run::check_drafts() {
  constexpr int64_t kMostDrafts = 5000;
  auto compared = check_recorded_drafts(*in_.model, head_now(), in_.head_sha256, in_.data->dump(),
                                        o_.cache, kMostDrafts, hooks_.stop);
  if (!compared) {
    Error error = compared.error();
    if (error.code == ErrorCode::BadFormat) error.message += "; nothing was trained";
    return error;
  }
  report_.drafts_compared = *compared;
  if (*compared > 0 && hooks_.say)
    hooks_.say(
        fmt::format("{} drafts that the engine made with this head are training's too", *compared));
  return {};
}

// Whether what is trained is what is served: hiddens of a piece at every depth.
Result<void> Run::check_training() {
  constexpr int kRows = 96;
  auto head = in_.model->make_head(head_now());
  if (!head) return head.error();
  Piece piece =
      in_.data->held_out().empty() ? in_.data->training().front() : in_.data->held_out().front();
  piece.rows = std::min(piece.rows, kRows);
  const auto stream = in_.data->dump().stream(piece.stream);
  NetShape shape = shape_;
  shape.mask = Mask::Served;
  HeadNet net(shape, layout_, tools_);
  net.set_weights(weights_);
  const NetBatch& batch = builder_.build({&piece, 1}, o_.depths, o_.beta, 1);
  net.forward(batch);
  auto distance = distance_to_serving(
      net, shape, batch, stream.tokens.subspan(piece.first, piece.rows + 1), **head, o_.cache);
  if (!distance) return distance.error();
  report_.distance = distance->median;
  if (hooks_.say) hooks_.say(builder_.example());
  for (size_t i = 0; i < distance->median.size(); ++i)
    if (!(distance->median[i] <= kMostDistance))
      return Error{
          ErrorCode::BadFormat,
          fmt::format("what training computes at depth {} lies {:.0f} % from what is "
                      "served (median of {} rows of stream {}); nothing was trained",
                      i + 1, 100 * distance->median[i], distance->rows, quoted_name(stream.id))};
  return {};
}

Result<void> Run::save() const {
  RunState state;
  state.settings = settings_of(in_, o_, *tools_.table);
  state.step = step_;
  state.optimiser_steps = optimiser_.steps();
  state.positions = report_.positions;
  state.skipped = report_.skipped;
  state.seconds = elapsed();
  state.flat = flat_;
  state.not_finite = not_finite_;
  state.evaluation_is_due = evaluation_is_due_;
  state.distance = report_.distance;
  state.sums = sums_;
  state.loss_steps = loss_steps_;
  state.history = report_.history;
  for (const auto part : {std::span<const float>(weights_), optimiser_.m(), optimiser_.v(),
                          optimiser_.average(), std::span<const float>(best_)})
    state.values.insert(state.values.end(), part.begin(), part.end());
  state.has_average = !optimiser_.average().empty();
  return write_run_state(state_file(), state);
}

Result<void> Run::resume() {
  fs::path used;
  auto state = read_run_state(state_file(), &used);
  if (!state) return state.error();
  if (used != state_file())
    warn(fmt::format("{} is not whole; going on from {}", state_file().string(), used.string()));
  const size_t n = weights_.size();
  const size_t parts = state->has_average ? 5 : 4;
  if (state->values.size() != parts * n || state->has_average != !optimiser_.average().empty() ||
      state->history.empty() || state->sums.size() != sums_.size())
    return Error{ErrorCode::BadFormat, used.string() + ": holds another head"};
  const float* from = state->values.data();
  const auto take = [&](std::span<float> to) {
    std::copy_n(from, to.size(), to.begin());
    from += to.size();
  };
  take(weights_);
  take(optimiser_.m());
  take(optimiser_.v());
  take(optimiser_.average());
  take(best_);
  optimiser_.set_steps(state->optimiser_steps);
  step_ = state->step;
  flat_ = state->flat;
  not_finite_ = state->not_finite;
  evaluation_is_due_ = state->evaluation_is_due;
  sums_ = std::move(state->sums);
  loss_steps_ = state->loss_steps;
  report_.distance = std::move(state->distance);
  seconds_before_ = state->seconds;
  report_.positions = state->positions;
  report_.skipped = state->skipped;
  report_.history = std::move(state->history);
  report_.baseline = report_.history.front();
  report_.best = *std::ranges::max_element(report_.history, {}, &HistoryEntry::expected);
  improved_ = report_.best.step > 0;
  return {};
}

Result<void> Run::begin() {
  const DataFacts& facts = in_.data->facts();
  if (facts.positions < kFewPositions)
    warn(
        fmt::format("{} positions to train on are few: below {} a head learns little that an "
                    "n-gram store would not know",
                    facts.positions, kFewPositions));
  if (facts.bad_rows > 0)
    warn(
        fmt::format("{} rows are not finite or all zero, the first: {}; they and what depends on "
                    "them are left away",
                    facts.bad_rows, facts.first_bad));
  if (facts.own_share() < 0.8)
    warn(
        fmt::format("of the dump's tokens {:.0f} % are the trunk's own first choice; with text of "
                    "others use soft targets",
                    100 * facts.own_share()));
  if (in_.resume) {
    if (auto resumed = resume(); !resumed) return resumed;
  } else {
    if (auto checked = check_start(); !checked) return checked;
    if (auto checked = check_training(); !checked) return checked;
  }
  net_.set_weights(weights_);
  return {};
}

int64_t Run::pass(std::span<const Piece> pieces, int depths, int pieces_of_step, bool back,
                  std::span<LossSums> sums) {
  int64_t targets = 0;
  const double beta = back && o_.dpace >= 0 ? 1 : o_.beta;
  net_.use_depths(depths);
  for (size_t first = 0; first < pieces.size();) {
    // As many pieces as fit into memory at a time, at least one.
    size_t last = first;
    for (int rows = 0; last < pieces.size(); ++last) {
      rows += pieces[last].rows;
      if (rows > o_.rows_at_a_time && last > first) break;
    }
    const NetBatch& batch =
        builder_.build(pieces.subspan(first, last - first), depths, beta, pieces_of_step);
    first = last;
    if (builder_.targets() == 0) continue;
    targets += builder_.targets();
    net_.forward(batch);
    net_.loss(batch, o_.targets, vocabulary_, sums, back ? o_.dpace : -1);
    if (back) net_.backward(batch, gradient_);
  }
  return targets;
}

// Whether the weights changed.
bool Run::step(int depths) {
  const auto start = Clock::now();
  std::vector<Piece> pieces;
  for (const int i : order_.of_step(step_)) pieces.push_back(in_.data->training()[i]);
  std::vector<LossSums> sums(o_.depths);
  const int64_t targets = pass(pieces, depths, o_.batch, true, sums);
  const float rate = scheduled_rate(o_.rate, step_, o_.warmup, share());
  ++step_;
  if (targets == 0) {
    ++report_.skipped;
    return false;
  }
  double loss = 0;
  int64_t positions = 0;
  for (const LossSums& sum : sums) {
    loss += sum.loss;
    positions += sum.targets;
  }
  if (!std::isfinite(loss)) std::ranges::fill(gradient_, NAN);
  if (!optimiser_.step(rate, weights_, gradient_, tools_)) {
    ++report_.skipped;
    ++not_finite_;
    warn(fmt::format("step {}: loss or gradient is not finite; the step was skipped", step_));
    return false;
  }
  not_finite_ = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    sums_[i].loss += sums[i].loss;
    sums_[i].targets += sums[i].targets;
    sums_[i].hits += sums[i].hits;
  }
  ++loss_steps_;
  step_loss_ = step_loss_ == 0 ? loss : 0.9 * step_loss_ + 0.1 * loss;
  report_.positions += positions;
  step_positions_ += positions;
  net_.set_weights(weights_);
  step_seconds_ += seconds_since(start);
  return true;
}

void Run::held_out(HistoryEntry& entry) {
  std::vector<Piece> pieces;
  int rows = 0;
  for (const Piece& piece : in_.data->held_out()) {
    if (rows >= kHeldOutRows) break;
    pieces.push_back(piece);
    rows += piece.rows;
  }
  const auto averaged = optimiser_.averaged(weights_);
  const bool other = averaged.data() != weights_.data();
  if (other) net_.set_weights(averaged);
  std::vector<LossSums> sums(o_.depths);
  pass(pieces, o_.depths, static_cast<int>(pieces.size()), false, sums);
  if (other) net_.set_weights(weights_);
  for (const LossSums& sum : sums) {
    entry.held_out_loss += sum.loss;
    entry.held_out_hits.push_back(
        sum.targets > 0 ? static_cast<double>(sum.hits) / static_cast<double>(sum.targets) : 0);
  }
}

Result<void> Run::evaluate_now(double at) {
  HistoryEntry entry;
  entry.step = step_;
  entry.positions = report_.positions;
  const HeadTensors head = head_now();
  Result<Evaluation> served = start_evaluation_ ? std::move(*start_evaluation_)
                                                : evaluate(*in_.model, head, plan_, hooks_.stop);
  start_evaluation_.reset();
  if (!served) return served.error();
  entry.rounds = served->counts.rounds;
  entry.joint = served->joint();
  entry.expected = served->expected();
  for (const LossSums& sum : sums_) {
    if (loss_steps_ > 0) entry.loss += sum.loss / loss_steps_;
    entry.training_hits.push_back(
        sum.targets > 0 ? static_cast<double>(sum.hits) / static_cast<double>(sum.targets) : 0);
  }
  held_out(entry);
  entry.seconds = elapsed();
  std::ranges::fill(sums_, LossSums{});
  loss_steps_ = 0;
  evaluation_is_due_ = false;

  const bool first = report_.history.empty();
  const bool better = first || entry.expected > report_.best.expected;
  report_.history.push_back(entry);
  if (first) report_.baseline = entry;
  if (better) {
    report_.best = entry;
    report_.by_length = served->by_length;
    flat_ = 0;
    std::ranges::copy(optimiser_.averaged(weights_), best_.begin());
    if (!first) {
      improved_ = true;
      if (auto written = write_head(in_.out, head); !written) return written;
    }
  } else if (is_last_task(at)) {
    ++flat_;
  }
  if (hooks_.evaluated) hooks_.evaluated(entry, better);
  if (!first && !warned_of_memorising_ && !entry.held_out_hits.empty() &&
      entry.training_hits[0] > entry.held_out_hits[0] + kMemorising) {
    warned_of_memorising_ = true;
    warn(
        fmt::format("the head is memorising: at depth 1 it guesses {:.0f} % of the training rows "
                    "and {:.0f} % of those held out; more data would help, more steps will not",
                    100 * entry.training_hits[0], 100 * entry.held_out_hits[0]));
  }
  return save();
}

void Run::report_progress(double at) const {
  if (!hooks_.progress) return;
  const double left = at > 0 ? elapsed() * (1 - at) / at : 0;
  hooks_.progress({.step = step_,
                   .share = at,
                   .loss = step_loss_,
                   .position_depths_per_second =
                       step_seconds_ > 0 ? static_cast<double>(step_positions_) / step_seconds_ : 0,
                   .seconds_left = left,
                   .last = report_.history.empty() ? nullptr : &report_.history.back()});
}

// Steps and evaluations until the run ends. What is saved between any two of them is enough to go
// on as if nothing had happened.
Result<TrainEnd> Run::go_on() {
  double at = share();
  auto slot = static_cast<int64_t>(at * kEvaluations);
  for (;;) {
    if (evaluation_is_due_) {
      const auto done = evaluate_now(at);
      if (!done && (done.error().code != ErrorCode::Interrupted || report_.history.empty()))
        return done.error();
      if (!done) return TrainEnd::Interrupted;
    }
    if (not_finite_ >= kMostNotFinite) return TrainEnd::NotFinite;
    if (at >= 1) return TrainEnd::Done;
    if (flat_ >= o_.flat_evaluations) return TrainEnd::Flat;
    if (stopped()) return TrainEnd::Interrupted;
    step(depths_at(at));
    at = share();
    report_progress(at);
    const auto now_slot = static_cast<int64_t>(at * kEvaluations);
    const bool wanted = o_.evaluate_every > 0 ? step_ % o_.evaluate_every == 0 : now_slot > slot;
    evaluation_is_due_ = (wanted || at >= 1) && not_finite_ < kMostNotFinite;
    slot = now_slot;
  }
}

Result<TrainReport> Run::run() {
  if (auto begun = begin(); !begun) return begun.error();
  start_ = Clock::now();
  report_.table = tools_.table->name;
  const auto end = go_on();
  if (!end) return end.error();
  report_.end = *end;
  if (report_.end == TrainEnd::Interrupted)
    if (auto saved = save(); !saved) return saved.error();

  const HeadTensors best = head_of(config_, layout_, best_);
  if (!improved_)
    if (auto written = write_head(in_.out, best); !written) return written.error();
  if (auto same = compare_with_file(*in_.model, best, in_.out, plan_); !same) return same.error();
  if (report_.by_length.empty()) {  // resumed, and nothing better was found since
    auto again = evaluate(*in_.model, best, plan_);
    if (!again) return again.error();
    report_.by_length = std::move(again->by_length);
  }
  if (report_.end != TrainEnd::Interrupted) {
    std::error_code ignored;
    fs::remove(state_file(), ignored);
    fs::remove(state_file().string() + ".before", ignored);
  }
  report_.steps = step_;
  report_.seconds = elapsed();
  return report_;
}

}  // namespace

const char* to_string(TrainEnd end) {
  switch (end) {
    case TrainEnd::Done:
      return "done";
    case TrainEnd::Flat:
      return "flat";
    case TrainEnd::NotFinite:
      return "not finite";
    case TrainEnd::Interrupted:
      return "interrupted";
  }
  return "unknown";
}

Result<TrainReport> train(const TrainInputs& inputs, const TrainOptions& options,
                          const TrainHooks& hooks) {
  check(options.steps > 0 || options.minutes > 0, "a run has an end");
  if (auto ok = check_inputs(inputs, options); !ok) return ok.error();
  auto trunk = TrunkSide::of(*inputs.model);
  const auto table = choose_train_table(*trunk->kernels().table, options.products);
  return Run(inputs, options, hooks, *trunk, {*table, trunk->kernels().pool}).run();
}

}  // namespace paceline::train
