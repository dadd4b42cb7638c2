#include "measure/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "measure/bandwidth.h"
#include "measure/cycle.h"
#include "measure/prediction.h"

namespace paceline::measure {
namespace {

// One run of one arm over one prompt.
struct Run {
  std::vector<TokenId> ids;
  std::vector<PositionBin> by_position;
  std::string drafter;
  GenerationStats stats;
};

// The runs of one visit to a prompt, one an arm, made right behind each other.
struct Visit {
  size_t prompt = 0;
  std::vector<Run> runs;
};

bool stopped(const BenchOptions& options) { return options.stop && options.stop(); }

// Interrupted when it was stopped half-way: such a run counts for nothing.
Result<Run> run_once(const Engine& engine, const Request& request, const BenchOptions& options) {
  auto generation = engine.start(request);
  if (!generation) return generation.error();
  while (!generation->done()) {
    if (stopped(options)) return Error{ErrorCode::Interrupted, "interrupted"};
    if (auto pieces = generation->step(); !pieces) return pieces.error();
  }
  Run run;
  for (const EmittedToken& token : generation->tokens()) run.ids.push_back(token.id);
  add_rounds(generation->tokens(), run.by_position);
  run.drafter = generation->drafter();
  run.stats = generation->stats();
  return run;
}

// All arms over one prompt, first to last or last to first.
Result<Visit> visit(const Engine& engine, const std::vector<BenchPrompt>& prompts, size_t index,
                    bool backwards, const BenchOptions& options) {
  const size_t n_arms = options.arms.size();
  Visit done{index, std::vector<Run>(n_arms)};
  for (size_t turn = 0; turn < n_arms; ++turn) {
    const size_t arm = backwards ? n_arms - 1 - turn : turn;
    Request request = prompts[index].request;
    const DraftShape& shape = options.arms[arm];
    request.depth = shape.depth;
    request.tree = shape.tree;
    request.drafter = shape.depth == 0 ? DrafterKind::None : options.drafter;
    auto run = run_once(engine, request, options);
    if (!run) return run.error();
    done.runs[arm] = *std::move(run);
  }
  return done;
}

void add_bins(std::vector<PositionBin>& sums, const std::vector<PositionBin>& bins) {
  if (sums.size() < bins.size()) sums.resize(bins.size());
  for (size_t i = 0; i < bins.size(); ++i) {
    sums[i].rounds += bins[i].rounds;
    sums[i].tokens += bins[i].tokens;
  }
}

// Values of visits, by prompt in the order of their first visits.
template <class T>
class PromptValues {
 public:
  void add(size_t prompt, T value) {
    const auto [place, is_new] = places_.try_emplace(prompt, values_.size());
    if (is_new) values_.emplace_back();
    values_[place->second].push_back(value);
  }
  const ByPrompt<T>& values() const { return values_; }

 private:
  std::map<size_t, size_t> places_;
  ByPrompt<T> values_;
};

Timed timed(const GenerationStats& stats) {
  return {static_cast<double>(stats.round_tokens), stats.decode_seconds()};
}

// Arm `index` over those visits that `take` picks.
template <class Take>
ArmSummary summarize(const std::vector<Visit>& visits, size_t index, const BenchOptions& options,
                     const BenchResult& result, Take take) {
  ArmSummary arm;
  arm.shape = options.arms[index];
  std::vector<double> rates;
  PromptValues<double> ratios;
  PromptValues<TimedPair> times;
  std::vector<double> predicted;
  for (const Visit& visit : visits) {
    if (!take(visit)) continue;
    const Run& run = visit.runs[index];
    const GenerationStats& stats = run.stats;
    arm.drafter = run.drafter;
    arm.tokens += static_cast<int64_t>(run.ids.size());
    arm.counts.add(stats);
    add_bins(arm.by_position, run.by_position);
    arm.draft_seconds += stats.draft_seconds;
    arm.verify_seconds += stats.verify_seconds;
    arm.other_seconds += stats.other_seconds;
    const double rate = stats.tokens_per_second();
    const GenerationStats& plain = visit.runs[0].stats;
    const double plain_rate = plain.tokens_per_second();
    if (rate > 0 && plain_rate > 0) {  // an answer of one token has no rounds
      rates.push_back(rate);
      ratios.add(visit.prompt, rate / plain_rate);
      times.add(visit.prompt, {timed(stats), timed(plain)});
      predicted.push_back(static_cast<double>(stats.round_tokens) /
                          predicted_seconds(stats, plain, result.passes, result.draft_seconds));
    }
  }
  arm.pairs = static_cast<int>(rates.size());
  if (!rates.empty()) {
    arm.tokens_per_second = median(rates);
    arm.speedup = median_of_prompts(ratios.values(), options.seed);
    arm.speedup_overall = rate_ratio(times.values());
    arm.predicted_tokens_per_second = median(predicted);
  }
  return arm;
}

std::vector<ArmSummary> summarize_all(const std::vector<Visit>& visits,
                                      const std::vector<BenchPrompt>& prompts,
                                      const BenchOptions& options, const BenchResult& result,
                                      const std::string* category) {
  std::vector<ArmSummary> arms;
  for (size_t i = 0; i < options.arms.size(); ++i) {
    arms.push_back(summarize(visits, i, options, result, [&](const Visit& visit) {
      return category == nullptr || prompts[visit.prompt].category == *category;
    }));
  }
  return arms;
}

// Seconds of a draft asked for, over all arms; by the engine's own measure where nothing was
// drafted.
double draft_seconds(const std::vector<Visit>& visits, const Engine& engine,
                     const PassCosts& passes) {
  double seconds = 0;
  int64_t drafts = 0;
  for (const Visit& visit : visits) {
    for (size_t arm = 1; arm < visit.runs.size(); ++arm) {
      seconds += visit.runs[arm].stats.draft_seconds;
      drafts += visit.runs[arm].stats.proposed;
    }
  }
  const DraftSource source = engine.head() != nullptr ? DraftSource::Mtp : DraftSource::Lookup;
  if (drafts == 0) return engine.costs().price(source) * passes.one_row_seconds;
  return seconds / static_cast<double>(drafts);
}

// Bytes that the plain arm's rounds read: the weights once a round, and the cache up to there.
double plain_bytes(const std::vector<Visit>& visits, const Engine& engine) {
  const ModelInfo& info = engine.model().info();
  const int element_bytes = engine.cache_type() == CacheType::F32 ? 4 : 2;
  const double layer_bytes = 2.0 * info.n_kv_heads * info.head_dim * element_bytes;  // a position
  const auto cache_bytes = [&](int length) {
    const int in_window = info.n_sliding > 0 ? std::min(length, info.window) : 0;
    return layer_bytes * (static_cast<double>(info.n_layers - info.n_sliding) * length +
                          static_cast<double>(info.n_sliding) * in_window);
  };
  double bytes = 0;
  for (const Visit& visit : visits) {
    const GenerationStats& stats = visit.runs[0].stats;
    for (int round = 1; round <= stats.rounds; ++round)
      bytes += static_cast<double>(info.weight_bytes) + cache_bytes(stats.prompt_tokens + round);
  }
  return bytes;
}

void compare_arms(const std::vector<Visit>& visits, const std::vector<BenchPrompt>& prompts,
                  BenchResult& result) {
  std::vector<bool> differs(prompts.size());
  std::vector<bool> cycles(prompts.size());
  std::vector<const std::vector<TokenId>*> first(prompts.size());
  for (const Visit& visit : visits) {
    const std::vector<TokenId>*& reference = first[visit.prompt];
    if (reference == nullptr) reference = &visit.runs[0].ids;
    for (const Run& run : visit.runs) {
      if (run.ids != *reference) differs[visit.prompt] = true;
    }
    if (ends_in_cycle(*reference)) cycles[visit.prompt] = true;
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (differs[i]) result.different.push_back(prompts[i].id);
    if (cycles[i]) result.cyclic.push_back(prompts[i].id);
  }
  result.identical = result.different.empty();
}

}  // namespace

std::optional<double> ArmSummary::prediction_error() const {
  if (shape.depth == 0 || tokens_per_second <= 0) return std::nullopt;
  return predicted_tokens_per_second / tokens_per_second - 1;
}

double break_even_tokens(const PassCosts& passes, double draft_cost, int depth) {
  return passes.multiplier[static_cast<size_t>(depth) + 1] + depth * draft_cost;
}

std::optional<double> break_even_acceptance(double tokens_per_round, int depth) {
  const auto tokens = [depth](double a) {
    double sum = 1;
    double power = 1;
    for (int d = 0; d < depth; ++d) sum += power *= a;
    return sum;
  };
  if (tokens(1) < tokens_per_round) return std::nullopt;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (tokens(middle) < tokens_per_round ? low : high) = middle;
  }
  return high;
}

Result<BenchResult> run_bench(const Engine& engine, const std::vector<BenchPrompt>& prompts,
                              const BenchOptions& options) {
  const auto progress = [&](std::string_view what, double share) {
    if (options.progress) options.progress(what, share);
  };
  BenchResult result;
  auto stream = StreamLoop::make(engine.model().info().weight_bytes, engine.threads());
  progress("measuring passes", 0);
  auto passes = measure_passes(engine, options.pass_repeats, options.stop);
  if (!passes) return passes.error();
  result.passes = *passes;

  auto watch = PassWatch::make(engine);
  progress("warming up", 0);
  BenchPrompt warm_up = prompts[0];
  warm_up.request.max_tokens = std::min(warm_up.request.max_tokens, 32);
  if (auto dropped = visit(engine, {warm_up}, 0, false, options); !dropped) return dropped.error();

  const auto start = std::chrono::steady_clock::now();
  const auto seconds_so_far = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<Visit> visits;
  const size_t n_visits = prompts.size() * static_cast<size_t>(options.repeats);
  for (size_t i = 0; i < n_visits && result.complete; ++i) {
    const size_t prompt = i % prompts.size();
    const bool backwards = (prompt + i / prompts.size()) % 2 == 1;
    progress(fmt::format("prompt {} of {}", i + 1, n_visits),
             static_cast<double>(i) / static_cast<double>(n_visits));
    auto done = visit(engine, prompts, prompt, backwards, options);
    if (!done && done.error().code != ErrorCode::Interrupted) return done.error();
    if (done) visits.push_back(*std::move(done));
    if (stream) stream->pass();
    if (watch) watch->look();
    const bool out_of_time = options.seconds > 0 && seconds_so_far() > options.seconds;
    if (stopped(options) || (out_of_time && i + 1 < n_visits)) result.complete = false;
  }
  if (visits.empty()) return Error{ErrorCode::Interrupted, "interrupted before the first pair"};

  if (watch) result.watched = watch->watched();
  result.draft_seconds = draft_seconds(visits, engine, result.passes);
  if (engine.head() != nullptr) result.head_cost = engine.costs().head;
  result.arms = summarize_all(visits, prompts, options, result, nullptr);
  for (const Visit& done : visits) result.by_category[prompts[done.prompt].category];
  for (auto& [category, arms] : result.by_category) {
    arms = summarize_all(visits, prompts, options, result, &category);
  }
  compare_arms(visits, prompts, result);

  const ArmSummary& plain = result.arms[0];
  if (plain.counts.rounds > 0) {
    result.plain_round_bytes =
        plain_bytes(visits, engine) / static_cast<double>(plain.counts.rounds);
    result.reached_rate = result.plain_round_bytes * plain.tokens_per_second / 1e9;
  }
  if (stream) {
    result.limit_rate = stream->median_rate();
    result.limit_best_rate = stream->best_rate();
  }
  PromptValues<double> plain_rates;
  for (const Visit& done : visits) {
    const double rate = done.runs[0].stats.tokens_per_second();
    if (rate > 0) plain_rates.add(done.prompt, rate);
  }
  if (!plain_rates.values().empty()) {
    const Estimate rate = median_of_prompts(plain_rates.values(), options.seed);
    const auto& interval = rate.interval ? rate.interval : rate.interval_prompts;
    if (interval) result.plain_spread = half_width(*interval, rate.value);
  }
  return result;
}

}  // namespace paceline::measure
