#include "apps/bench_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "apps/bench_checks.h"
#include "apps/generate_report.h"
#include "apps/say.h"
#include "apps/spec_flags.h"

namespace paceline::apps {
namespace {

using measure::ArmSummary;
using measure::BenchResult;
using measure::Estimate;
using measure::Interval;

constexpr size_t kShownDepths = 6;  // in the table

// None where there is nothing to divide by.
std::optional<double> ratio(double a, double b) {
  if (b <= 0) return std::nullopt;
  return a / b;
}
std::optional<double> ratio(int64_t a, int64_t b) {
  return ratio(static_cast<double>(a), static_cast<double>(b));
}
// A measured rate; none where there was nothing to measure.
std::optional<double> rate(double value) { return ratio(value, value > 0 ? 1.0 : 0.0); }

// What was not measured is null, and "-" in a table.
Json to_json(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }
Json to_json(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
}
std::string shown(std::optional<double> value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}
std::string shown(const std::optional<Interval>& interval) {
  return interval ? fmt::format("[{:.2f}, {:.2f}]", interval->low, interval->high) : "-";
}

std::optional<double> tokens_per_round(const ArmSummary& arm) {
  return ratio(arm.counts.round_tokens, arm.counts.rounds);
}

std::optional<double> rows_per_round(const ArmSummary& arm) {
  return ratio(arm.counts.drafted + arm.counts.rounds, arm.counts.rounds);
}

// Share of rounds in which the drafts of depths 1 .. d all stood; none where none was drafted.
std::optional<double> joint_acceptance(const ArmSummary& arm, size_t depth) {
  if (arm.counts.drafted_by_depth[depth - 1] == 0) return std::nullopt;
  return ratio(arm.counts.accepted_by_depth[depth - 1], arm.counts.rounds);
}

// The same over those rounds in which the draft before it stood.
std::optional<double> conditional_acceptance(const ArmSummary& arm, size_t depth) {
  if (arm.counts.drafted_by_depth[depth - 1] == 0) return std::nullopt;
  const int64_t before = depth == 1 ? arm.counts.rounds : arm.counts.accepted_by_depth[depth - 2];
  return ratio(arm.counts.accepted_by_depth[depth - 1], before);
}

int64_t all_accepted(const ArmSummary& arm) {
  return std::accumulate(arm.counts.accepted_by_depth.begin(), arm.counts.accepted_by_depth.end(),
                         int64_t{0});
}

// The value; none without a pair.
std::optional<double> if_paired(const ArmSummary& arm, const Estimate& estimate) {
  return arm.pairs > 0 ? std::optional(estimate.value) : std::nullopt;
}

Json by_position_json(const ArmSummary& arm) {
  Json rounds = Json::array();
  Json tokens = Json::array();
  for (const measure::PositionBin& bin : arm.by_position) {
    rounds.push_back(bin.rounds);
    tokens.push_back(bin.tokens);
  }
  return Json{{"width", measure::PositionBin::kWidth},
              {"rounds", std::move(rounds)},
              {"tokens", std::move(tokens)}};
}

Json arm_json(const ArmSummary& arm) {
  Json joint = Json::array();
  Json conditional = Json::array();
  for (size_t depth = 1; depth <= arm.counts.accepted_by_depth.size(); ++depth) {
    joint.push_back(to_json(joint_acceptance(arm, depth)));
    conditional.push_back(to_json(conditional_acceptance(arm, depth)));
  }
  const Estimate& overall = arm.speedup_overall;
  const auto rounds = static_cast<double>(arm.counts.rounds);
  return Json{{"depth", depth_json(arm.shape)},
              {"tree", tree_json(arm.shape)},
              {"drafter", arm.drafter},
              {"tokens", arm.tokens},
              {"rounds", arm.counts.rounds},
              {"tokens_per_round", to_json(tokens_per_round(arm))},
              {"drafted", arm.counts.drafted},
              {"rows", arm.counts.drafted + arm.counts.rounds},
              {"rows_per_round", to_json(rows_per_round(arm))},
              {"calibration", calibration_json(arm.counts)},
              {"drafted_by_depth", arm.counts.drafted_by_depth},
              {"accepted_by_depth", arm.counts.accepted_by_depth},
              {"drafted_by_source", by_source_json(arm.counts.drafted_by_source)},
              {"accepted_by_source", by_source_json(arm.counts.accepted_by_source)},
              {"joint_acceptance", std::move(joint)},
              {"conditional_acceptance", std::move(conditional)},
              {"expected_accepted", to_json(ratio(all_accepted(arm), arm.counts.rounds))},
              {"tokens_per_second", to_json(rate(arm.tokens_per_second))},
              {"speedup", to_json(if_paired(arm, arm.speedup))},
              {"speedup_interval", to_json(arm.speedup.interval)},
              {"speedup_interval_prompts", to_json(arm.speedup.interval_prompts)},
              {"speedup_overall", to_json(if_paired(arm, overall))},
              {"speedup_overall_interval", to_json(overall.interval)},
              {"speedup_overall_interval_prompts", to_json(overall.interval_prompts)},
              {"pairs", arm.pairs},
              {"by_position", by_position_json(arm)},
              {"predicted_tokens_per_second", to_json(rate(arm.predicted_tokens_per_second))},
              {"prediction_error", to_json(arm.prediction_error())},
              {"round_ms", Json{{"draft", to_json(ratio(arm.draft_seconds * 1e3, rounds))},
                                {"verify", to_json(ratio(arm.verify_seconds * 1e3, rounds))},
                                {"other", to_json(ratio(arm.other_seconds * 1e3, rounds))}}}};
}

Json arms_json(const std::vector<ArmSummary>& arms) {
  Json list = Json::array();
  for (const ArmSummary& arm : arms) list.push_back(arm_json(arm));
  return list;
}

Json break_even_json(const BenchResult& result) {
  Json by_depth = Json::object();
  for (int depth = 1; depth <= kMaxDepth; depth *= 2) {
    const double tokens = measure::break_even_tokens(result.passes, result.draft_cost(), depth);
    const auto acceptance = measure::break_even_acceptance(tokens, depth);
    by_depth[fmt::format("{}", depth)] =
        Json{{"tokens_per_round", tokens}, {"acceptance", to_json(acceptance)}};
  }
  return by_depth;
}

Json watched_json(const std::optional<measure::Watched>& seen) {
  if (!seen) return nullptr;
  return Json{{"rows", measure::Watched::kRows},
              {"looks", seen->looks},
              {"mean", seen->mean},
              {"low", seen->low},
              {"high", seen->high},
              {"crossing_ns", seen->crossing ? Json(*seen->crossing * 1e9) : Json(nullptr)}};
}

Json round_cost_json(const measure::PassCosts& passes) {
  Json rows = Json::array();
  Json ms = Json::array();
  Json multiplier = Json::array();
  for (size_t m = 1; m < passes.multiplier.size(); ++m) {
    rows.push_back(m);
    multiplier.push_back(passes.multiplier[m]);
    ms.push_back(passes.multiplier[m] * passes.one_row_seconds * 1e3);
  }
  return Json{
      {"rows", std::move(rows)}, {"ms", std::move(ms)}, {"multiplier", std::move(multiplier)}};
}

void print_arm(const ArmSummary& arm, size_t width) {
  const auto times = [&](const Estimate& estimate) {
    const auto value = if_paired(arm, estimate);
    return value ? fmt::format("{:.2f}x", *value) : "-";
  };
  say("{:<{}}{:<9}{:>8}{:>9}{:>11}{:>10}  {:<14}{:<15}{:>7}{:>12}", shape_name(arm.shape), width,
      arm.drafter, arm.tokens, shown(tokens_per_round(arm), 2),
      shown(rate(arm.tokens_per_second), 1), times(arm.speedup), shown(arm.speedup.interval),
      shown(arm.speedup.interval_prompts), times(arm.speedup_overall),
      shown(rate(arm.predicted_tokens_per_second), 1));
  const size_t n = std::min(arm.counts.accepted_by_depth.size(), kShownDepths);
  for (size_t depth = 1; depth <= n; ++depth) {
    say("{}{}", depth == 1 ? "   " : " ", shown(joint_acceptance(arm, depth), 2));
  }
  say("\n");
}

void print_why_no_interval(const BenchResult& result) {
  const auto any_arm = [&](auto is) {
    return std::any_of(result.arms.begin(), result.arms.end(), is);
  };
  if (any_arm([](const ArmSummary& arm) { return arm.speedup.interval.has_value(); })) return;
  if (!any_arm([](const ArmSummary& arm) { return arm.pairs > 0; }))
    say("Answers of one token have no rounds that could be timed: give more --max-tokens.\n");
  else if (!result.complete)
    say("It ended before every prompt was run twice, so nobody can tell what the next run gives: "
        "give more --seconds or fewer prompts.\n");
  else
    say("Of prompts that were run once nobody can tell what the next run gives: give --repeats 2 "
        "or more.\n");
}

void print_arms(const BenchResult& result, size_t width) {
  say("\n{:<{}}drafter    tokens  /round   tokens/s   speedup  run again     other prompts  "
      "overall "
      "  predicted   joint acceptance by depth\n",
      "depth", width);
  for (const ArmSummary& arm : result.arms) print_arm(arm, width);
  for (const auto& [category, arms] : result.by_category) {
    if (result.by_category.size() == 1) break;
    say("\n{}\n", category.empty() ? "without category" : category);
    for (const ArmSummary& arm : arms) print_arm(arm, width);
  }
  say("\nspeedup: the median of the prompts; overall: all tokens over all seconds. With 95 % "
      "confidence the speedup lies in the first interval when these prompts are run again, in the "
      "second one over other prompts like them.\n");
  print_why_no_interval(result);
}

// What a round is made of, and what its drafts give.
void print_rounds(const ArmSummary& arm) {
  if (arm.counts.rounds == 0) return;
  const double ms = 1e3 / static_cast<double>(arm.counts.rounds);
  say("a round of depth {}: draft {:.3f}, verify {:.3f}, rest {:.3f} ms", shape_name(arm.shape),
      arm.draft_seconds * ms, arm.verify_seconds * ms, arm.other_seconds * ms);
  const size_t n = arm.counts.accepted_by_depth.size();
  if (n == 0) return say("\n");
  say("; {} rows a round, {} tokens a row; E {:.2f}; conditional acceptance",
      shown(rows_per_round(arm), 2),
      shown(ratio(arm.counts.round_tokens, arm.counts.rounds + arm.counts.drafted), 2),
      static_cast<double>(all_accepted(arm)) / static_cast<double>(arm.counts.rounds));
  for (size_t depth = 1; depth <= std::min(n, kShownDepths); ++depth)
    say(" {}", shown(conditional_acceptance(arm, depth), 2));
  say("\n");
}

// Of drafts whose place was reached, the share that stood, by how sure their source was.
void print_calibration(const ArmSummary& arm) {
  const RoundCounts& counts = arm.counts;
  if (counts.drafted == 0) return;
  say("depth {}: of the drafts whose place was reached these shares stood, by how sure their "
      "source "
      "was, 0 to {}\n",
      shape_name(arm.shape), kEvidenceLevels - 1);
  for (int source = 0; source < kDraftSources; ++source) {
    for (const bool second : {false, true}) {
      std::string line;
      int64_t all = 0;
      for (int level = 0; level < kEvidenceLevels; ++level) {
        const auto kind =
            static_cast<size_t>(evidence_kind({.source = static_cast<DraftSource>(source),
                                               .evidence = static_cast<uint8_t>(level),
                                               .second = second}));
        const int64_t tested = counts.tested_by_evidence[kind];
        constexpr int64_t kEnough = 20;
        line += fmt::format("{:>5}", tested < kEnough
                                         ? "-"
                                         : shown(ratio(counts.stood_by_evidence[kind], tested), 2));
        all += tested;
      }
      if (all > 0)
        say("{:<9}{:<7}{:>7}{}\n", to_string(static_cast<DraftSource>(source)),
            second ? "others" : "first", all, line);
    }
  }
}

// The cost model against the clock.
void print_predictions(const std::vector<ArmSummary>& arms) {
  for (const ArmSummary& arm : arms) {
    const auto error = arm.prediction_error();
    if (!error) continue;
    say("cost model, depth {}: predicted {:.1f}, measured {:.1f} tokens/s, off by {:.1f} %\n",
        shape_name(arm.shape), arm.predicted_tokens_per_second, arm.tokens_per_second,
        100 * *error);
  }
}

// Of all arms the error that is largest in magnitude.
std::optional<double> worst_prediction_error(const std::vector<ArmSummary>& arms) {
  std::optional<double> worst;
  for (const ArmSummary& arm : arms) {
    const auto error = arm.prediction_error();
    if (error && (!worst || std::abs(*error) > std::abs(*worst))) worst = error;
  }
  return worst;
}

}  // namespace

void add_bench_json(const BenchResult& result, Json& report) {
  report["complete"] = result.complete;
  report["arms"] = arms_json(result.arms);
  report["identical"] = result.identical;
  report["different"] = result.different;
  report["cyclic"] = result.cyclic;
  Json by_category = Json::object();
  for (const auto& [category, arms] : result.by_category) by_category[category] = arms_json(arms);
  report["by_category"] = std::move(by_category);
  Json multiplier = Json::object();
  for (const int rows : {1, 2, 3, 4, 5, 6, 8, 16}) {
    multiplier[fmt::format("{}", rows)] = result.passes.multiplier[rows];
  }
  report["verify_multiplier"] = std::move(multiplier);
  report["round_cost"] = round_cost_json(result.passes);
  report["watched"] = watched_json(result.watched);
  report["verify_position"] = result.passes.position;
  report["one_row_ms"] = result.passes.one_row_seconds * 1e3;
  report["draft_cost"] = result.draft_cost();
  report["head_cost"] = to_json(result.head_cost);
  report["prediction_error"] = to_json(worst_prediction_error(result.arms));
  report["break_even"] = break_even_json(result);
  report["bandwidth"] = Json{{"reached", to_json(rate(result.reached_rate))},
                             {"limit", to_json(rate(result.limit_rate))},
                             {"limit_best", to_json(rate(result.limit_best_rate))},
                             {"bytes_per_round", to_json(rate(result.plain_round_bytes))}};
}

void print_bench_table(const Json& report, const BenchResult& result) {
  say("{} threads, {}, {} numerics, {}, pages of {}, load {:.2f}\n", report["threads"].dump(),
      report["instruction_set"].get<std::string>(), report["numerics"].get<std::string>(),
      report["cpu"].get<std::string>(), report["page_size"].get<std::string>(),
      report["machine_load"][0].get<double>());
  size_t width = 5;
  for (const ArmSummary& arm : result.arms) width = std::max(width, shape_name(arm.shape).size());
  ++width;
  print_arms(result, width);
  say("\nverify multiplier at position {}:", result.passes.position);
  for (const auto& [rows, r] : report["verify_multiplier"].items()) {
    say(" r({}) {:.2f}", rows, r.get<double>());
  }
  say("\ndraft cost {:.4f} of a pass{}; pays from tokens/round on:", result.draft_cost(),
      result.head_cost ? fmt::format(", a step of the head {:.4f}", *result.head_cost) : "");
  for (int depth = 1; depth <= kMaxDepth; depth *= 2)
    say(" depth {} {:.2f}", depth,
        measure::break_even_tokens(result.passes, result.draft_cost(), depth));
  say("\n");
  for (const ArmSummary& arm : result.arms) print_rounds(arm);
  for (const ArmSummary& arm : result.arms) print_calibration(arm);
  print_predictions(result.arms);
  if (const auto& seen = result.watched)
    say("all through the run a pass of {} rows cost {:.2f} of one row ({:.2f} to {:.2f}){}\n",
        measure::Watched::kRows, seen->mean, seen->low, seen->high,
        seen->crossing ? fmt::format("; a line crossed between two threads in {:.0f} ns",
                                     *seen->crossing * 1e9)
                       : "");
  if (result.reached_rate == 0) {
    say("bandwidth: nothing was decoded plainly\n");
  } else if (result.limit_rate > 0) {
    say("bandwidth: {:.1f} GB/s reached, {:.1f} GB/s by a bare loop ({:.0f} %)\n",
        result.reached_rate, result.limit_rate, 100 * result.reached_rate / result.limit_rate);
  } else {
    say("bandwidth: {:.1f} GB/s reached; no memory left for the bare loop\n", result.reached_rate);
  }
  for (const std::string& id : result.cyclic) {
    say("prompt {}: the answer runs into a short cycle; its acceptance says little\n", id);
  }
  for (const std::string& id : result.different) say("prompt {}: arms differ\n", id);
  print_bench_checks(report);
  say("identical: {}{}{}\n", result.identical ? "yes" : "no",
      report["noisy"].get<bool>() ? "; noisy: repeat on a quiet machine" : "",
      result.complete ? "" : "; not all prompts were run");
}

}  // namespace paceline::apps
