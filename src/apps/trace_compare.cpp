// paceline trace-compare: how often two traces choose differently, and how decidedly.
#include <fmt/core.h>

#include <cmath>

#include "apps/commands.h"
#include "apps/gap_log.h"
#include "apps/html_file.h"
#include "apps/json_file.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/text_file.h"
#include "apps/trace_file.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

using measure::TraceComparison;

Json comparison_json(const TraceComparison& found) {
  constexpr size_t kBuckets = TraceComparison::kGaps.size();
  Json by_gap = Json::array();
  for (size_t i = 0; i < kBuckets; ++i)
    by_gap.push_back(Json{{"from", TraceComparison::kGaps[i]},
                          {"to", i + 1 < kBuckets ? Json(TraceComparison::kGaps[i + 1]) : Json()},
                          {"positions", found.by_gap[i]},
                          {"differing", found.differing_by_gap[i]}});
  const auto rows = static_cast<double>(found.positions);
  return Json{
      {"verdict", to_string(found.verdict())},
      {"positions", found.positions},
      {"differing", found.differing},
      {"moved", found.moved},
      {"disagreement", found.disagreement()},
      {"decided", found.decided},
      {"decided_gap", TraceComparison::kDecided},
      {"differing_decided", found.differing_decided},
      {"disagreement_decided", found.disagreement_decided()},
      {"by_gap", by_gap},
      {"rank_of_reference", found.rank_of_reference},
      {"delta_quantiles",
       {{"p50", found.quantile(0.5)},
        {"p90", found.quantile(0.9)},
        {"p99", found.quantile(0.99)},
        {"max", found.quantile(1)}}},
      {"perplexity", {std::exp(found.reference_nll / rows), std::exp(found.candidate_nll / rows)}},
      {"kl", found.kl ? Json(*found.kl) : Json()},
      {"kl_share", found.kl_share}};
}

void print_comparison(const TraceComparison& found) {
  say("verdict: {}; {} of {} positions choose differently, {} of {} decided ones (gap {} or "
      "more)\n",
      to_string(found.verdict()), found.differing, found.positions, found.differing_decided,
      found.decided, TraceComparison::kDecided);
  say("  gap of the reference   positions  differing\n");
  for (size_t i = 0; i < found.by_gap.size(); ++i)
    say("  from {:<4}             {:10} {:10}\n", TraceComparison::kGaps[i], found.by_gap[i],
        found.differing_by_gap[i]);
  say("{} of {} rows have a logit that is not the same\n", found.moved, found.positions);
  say("logit of the reference's choice moves by {:.3g} (median), {:.3g} (p99), {:.3g} (most)\n",
      found.quantile(0.5), found.quantile(0.99), found.quantile(1));
  const auto rows = static_cast<double>(found.positions);
  say("perplexity {:.6f} and {:.6f}\n", std::exp(found.reference_nll / rows),
      std::exp(found.candidate_nll / rows));
}

}  // namespace

int trace_compare(Args args) {
  std::string paths[2];
  JsonFile json;
  HtmlFile html;
  Flags flags("trace-compare",
              "Compare two traces of one text. Exit status 0 where no position chooses "
              "differently, 3 where only undecided ones do, 1 where a decided one does.",
              "paceline trace-compare plain.trace blocks.trace");
  flags.positional("REFERENCE", paths[0], "the trace that is right by definition");
  flags.positional("CANDIDATE", paths[1], "the trace that is held against it");
  flags.group("Output");
  json.add_flag(flags);
  html.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("trace-compare", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = check_outputs({json.file(), html.file()}, paths); !ok)
    return fail("trace-compare", ok.error());

  TraceFile files[2];
  for (int i = 0; i < 2; ++i) {
    const auto text = read_text("trace-compare", paths[i]);
    if (!text) return fail("trace-compare", text.error());
    auto file = parse_trace(*text, paths[i]);
    if (!file) return fail("trace-compare", file.error());
    files[i] = *std::move(file);
  }
  if (files[0].header == files[1].header)
    return fail("trace-compare", {ErrorCode::BadUsage,
                                  "both traces say that they come from the same configuration; "
                                  "comparing a run with itself shows nothing"});
  const auto found = measure::compare_traces(files[0].points, files[1].points);
  if (!found) return fail("trace-compare", found.error());
  Json report = report_head("trace-compare");
  report["reference"] = paths[0];
  report["candidate"] = paths[1];
  report["configurations"] = {files[0].header, files[1].header};
  report.update(comparison_json(*found));
  measure::GapHistogram gaps;
  for (const measure::TracePoint& point : files[0].points) gaps.add(point.gap());
  report["gap_histogram"] = gap_histogram_json(gaps);
  if (auto written = json.write(report); !written) return fail("trace-compare", written.error());
  if (auto written = html.write(report); !written) return fail("trace-compare", written.error());
  if (!json.is_stdout()) print_comparison(*found);
  switch (found->verdict()) {
    case TraceComparison::Verdict::Same:
      return kExitSuccess;
    case TraceComparison::Verdict::Undecided:
      return kExitUndecided;
    case TraceComparison::Verdict::Decided:
      break;
  }
  return kExitCheckFailed;
}

}  // namespace paceline::apps
