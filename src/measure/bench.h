// Plain and speculative decoding, timed side by side in one process.
//
// Inside the timing of an arm: its rounds, from the first behind the prefill to the last. Outside:
// loading, tokenizing, the prefill, and one run of every arm at the start, which is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "measure/estimate.h"
#include "measure/over_position.h"
#include "measure/pass_costs.h"
#include "measure/pass_watch.h"

namespace paceline::measure {

struct BenchPrompt {
  std::string id;
  std::string category;  // "" when there is none
  Request request;       // depth and drafter are set by the arm
};

struct BenchOptions {
  std::vector<DraftShape> arms;  // the first is of depth 0
  DrafterKind drafter = DrafterKind::Auto;
  int repeats = 3;     // times that every prompt is run in every arm
  double seconds = 0;  // begin no prompt after this time; 0: no limit
  int pass_repeats = 15;
  uint64_t seed = 1;  // of the bootstrap
  std::function<void(std::string_view what, double share)> progress = {};
  std::function<bool()> stop;  // looked at between rounds
};

// One arm over some prompts.
struct ArmSummary {
  DraftShape shape = {.depth = 0};
  std::string drafter;
  int64_t tokens = 0;  // emitted, the prefill's token among them
  RoundCounts counts;
  std::vector<PositionBin> by_position;
  double draft_seconds = 0;
  double verify_seconds = 0;
  double other_seconds = 0;
  double tokens_per_second = 0;  // median over runs
  // Over the plain run beside it: the median of prompts, each with the median of its pairs.
  Estimate speedup = {.value = 1, .interval = {}, .interval_prompts = {}};
  Estimate speedup_overall = speedup;  // all tokens over all seconds
  int pairs = 0;
  // Median over runs, each predicted as measure/prediction.h says; the plain arm's is its own.
  double predicted_tokens_per_second = 0;
  // The gate of the cost model: predicted over measured, less 1. None for plain decoding, which the
  // prediction stands on, and where there was no round.
  std::optional<double> prediction_error() const;
};

struct BenchResult {
  std::vector<ArmSummary> arms;
  std::map<std::string, std::vector<ArmSummary>> by_category;
  bool identical = true;               // every arm wrote the same ids for every prompt
  bool complete = true;                // false after Ctrl-C or the time limit
  std::vector<std::string> different;  // prompts whose arms differ
  std::vector<std::string> cyclic;     // prompts whose answer runs into a short cycle
  PassCosts passes;
  std::optional<Watched> watched;  // none: no memory for it
  double draft_seconds = 0;        // of a draft asked for
  double draft_cost() const { return draft_seconds / passes.one_row_seconds; }
  // d: a step of the draft head in passes of one row, as the depth policy has it; none without a
  // head. Drafts that are looked up cost next to nothing, so a union's draft_cost() is below.
  std::optional<double> head_cost;
  double plain_round_bytes = 0;  // weights and cache that a plain round reads; mean
  double reached_rate = 0;       // GB/s of weights and cache in plain decoding
  double limit_rate = 0;         // GB/s of the bare loop: median,
  double limit_best_rate = 0;    // and best
  // Half-width of the interval of plain tokens/s, as a share: over these prompts, or, where they
  // were run only once, over prompts, of which plain decoding makes little difference.
  std::optional<double> plain_spread;
};

// Interrupted only when nothing was measured.
Result<BenchResult> run_bench(const Engine& engine, const std::vector<BenchPrompt>& prompts,
                              const BenchOptions& options);

// Tokens per round above which K drafts a round pay: r(K+1) + K d.
double break_even_tokens(const PassCosts& passes, double draft_cost, int depth);
// The conditional acceptance a, the same at every depth, with which 1 + a + ... + a^K reaches that;
// none where no acceptance does.
std::optional<double> break_even_acceptance(double tokens_per_round, int depth);

}  // namespace paceline::measure
