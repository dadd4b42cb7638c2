#include "measure/batch.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace paceline::measure {
namespace {

using Ids = std::vector<TokenId>;

struct Run {
  std::vector<Ids> ids;  // by sequence
  int64_t tokens = 0;
  double seconds = 0;
};

int64_t round_tokens(const std::vector<Generation>& generations) {
  int64_t tokens = 0;
  for (const Generation& generation : generations) tokens += generation.stats().round_tokens;
  return tokens;
}

Result<Run> run_batch(const Engine& engine, const std::vector<Request>& requests, int n,
                      const std::function<bool()>& stop) {
  std::vector<Generation> generations;
  generations.reserve(n);
  for (int i = 0; i < n; ++i) {
    auto generation = engine.start(requests[static_cast<size_t>(i) % requests.size()]);
    if (!generation) return generation.error();
    generations.push_back(std::move(*generation));
  }
  std::vector<Generation*> all;
  all.reserve(generations.size());
  for (Generation& generation : generations) all.push_back(&generation);
  // All prompts are read before the clock starts; those that are done with theirs wait.
  for (std::vector<Generation*> reading = all; !reading.empty();) {
    Generation::step_together(reading);
    std::erase_if(reading, [](Generation* g) { return g->done() || !g->tokens().empty(); });
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
  }
  Run run;
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = round_tokens(generations);
  const auto any_done = [&] {
    return std::any_of(all.begin(), all.end(), [](Generation* g) { return g->done(); });
  };
  while (!any_done()) {
    Generation::step_together(all);
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.tokens = round_tokens(generations) - before;
  while (!std::all_of(all.begin(), all.end(), [](Generation* g) { return g->done(); }))
    Generation::step_together(all);  // the rest of those that were slower, outside the timing
  for (const Generation& generation : generations) {
    if (generation.error()) return *generation.error();
    Ids& ids = run.ids.emplace_back();
    for (const EmittedToken& token : generation.tokens()) ids.push_back(token.id);
  }
  return run;
}

}  // namespace

Result<BatchResult> run_batches(const Engine& engine, const std::vector<Request>& requests,
                                const BatchOptions& options) {
  const size_t most =
      static_cast<size_t>(*std::max_element(options.sizes.begin(), options.sizes.end()));
  std::vector<Ids> alone;
  for (size_t i = 0; i < std::min(most, requests.size()); ++i) {
    auto run = run_batch(engine, {requests[i]}, 1, options.stop);
    if (!run) return run.error();
    alone.push_back(std::move(run->ids[0]));
  }
  BatchResult result;
  std::vector<std::vector<double>> rates(options.sizes.size());
  for (const int size : options.sizes) result.sizes.emplace_back().sequences = size;
  const size_t n = options.sizes.size();
  for (size_t turn = 0; turn < n * static_cast<size_t>(options.repeats); ++turn) {
    const bool backwards = turn / n % 2 == 1;
    const size_t i = backwards ? n - 1 - turn % n : turn % n;
    if (options.progress)
      options.progress(fmt::format("{} sequences together", options.sizes[i]),
                       static_cast<double>(turn) / static_cast<double>(n * options.repeats));
    auto run = run_batch(engine, requests, options.sizes[i], options.stop);
    if (!run) return run.error();
    for (size_t k = 0; k < run->ids.size(); ++k)
      if (run->ids[k] != alone[k % alone.size()]) result.identical = false;
    result.sizes[i].tokens += run->tokens;
    if (run->seconds > 0) rates[i].push_back(static_cast<double>(run->tokens) / run->seconds);
  }
  for (size_t i = 0; i < n; ++i) {
    if (rates[i].empty()) continue;
    const Estimate rate = median_of_prompts({rates[i]}, options.seed);
    result.sizes[i].tokens_per_second = rate.value;
    result.sizes[i].interval = rate.interval;
  }
  return result;
}

}  // namespace paceline::measure
