// paceline guard: would a margin guard pay, for kernels that are not exact?
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

// JSON has no infinity.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json guard_json(const measure::Guard& guard) {
  Json rows = Json::array();
  for (const measure::GuardRow& row : guard.rows)
    rows.push_back(Json{{"threshold", row.threshold},
                        {"coverage", row.coverage},
                        {"ambiguous", row.ambiguous},
                        {"cost", row.cost},
                        {"break_even", finite(row.break_even)}});
  return Json{{"rows", rows},
              {"break_even", finite(guard.break_even)},
              {"rounds", guard.rounds},
              {"gaps", guard.gaps},
              {"positions", guard.positions},
              {"positions_unknown", guard.unknown},
              {"largest_movement", guard.largest},
              {"unseen_rate", guard.unseen_rate},
              {"unseen_rows", guard.unseen_rows},
              {"thin", guard.thin()}};
}

void print_guard(const measure::Guard& guard, double exact_cost) {
  say("{} rounds, {} rows; gaps moved at {} positions, by {:.3g} at most\n", guard.rounds,
      guard.gaps, guard.positions, guard.largest);
  say("threshold   covered   ambiguous rounds   cost against always exact ({:.2f})\n", exact_cost);
  for (const measure::GuardRow& row : guard.rows)
    say("{:9.3g}  {:7.3f} %  {:15.2f} %  {:8.3f}\n", row.threshold, 100 * row.coverage,
        100 * row.ambiguous, row.cost);
  if (std::isfinite(guard.break_even))
    say("covering all that was seen pays where exact rounds cost {:.3f} or more\n",
        guard.break_even);
  else
    say("covering all that was seen never pays\n");
  if (guard.thin())
    say(stderr,
        "warning: {} positions cannot rule out larger movements at a rate of {:.2g}, which is "
        "{:.0f} "
        "rows of this log; trace a longer text\n",
        guard.positions, guard.unseen_rate, guard.unseen_rows);
}

}  // namespace

int guard(Args args) {
  std::string paths[3];
  double exact_cost = 1.23;
  std::vector<float> thresholds;
  JsonFile json;
  HtmlFile html;
  Flags flags("guard",
              "What a margin guard would cost kernels that are not exact: rounds whose two "
              "likeliest tokens are closer than a threshold are read again exactly. From the gaps "
              "of a run (generate --gap-log) and the traces of exact and of faster kernels.",
              "paceline guard gaps.jsonl exact.trace fast.trace");
  flags.positional("GAPS", paths[0], "gap log of a run");
  flags.positional("REFERENCE", paths[1], "trace of the exact kernels");
  flags.positional("CANDIDATE", paths[2], "trace of the faster ones over the same text");
  flags.group("Guard");
  flags.value(
      "--exact-cost", "X",
      [&](std::string_view given) -> Result<void> {
        const auto cost = parse_number(given, 0.01, 1000);
        if (!cost) return cost.error();
        exact_cost = *cost;
        return {};
      },
      "an exact round over a fast one (default: 1.23, what published engines pay; see bench "
      "--price)");
  flags.value(
      "--thresholds", "T,T,...",
      [&](std::string_view given) -> Result<void> {
        for (size_t begin = 0; begin <= given.size();) {
          const size_t comma = std::min(given.find(',', begin), given.size());
          const auto value = parse_number(given.substr(begin, comma - begin), 0, 1e6);
          if (!value) return wants("gaps of 0 or more, separated by commas", given);
          thresholds.push_back(static_cast<float>(*value));
          begin = comma + 1;
        }
        return {};
      },
      "gaps below which a round is read again (default: 0.01 to 10)");
  flags.group("Output");
  json.add_flag(flags);
  html.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("guard", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = check_outputs({json.file(), html.file()}, paths); !ok)
    return fail("guard", ok.error());
  std::string texts[3];
  for (int i = 0; i < 3; ++i) {
    auto text = read_text("guard", paths[i]);
    if (!text) return fail("guard", text.error());
    texts[i] = *std::move(text);
  }
  const auto gaps = parse_gap_log(texts[0], paths[0]);
  if (!gaps) return fail("guard", gaps.error());
  const auto reference = parse_trace(texts[1], paths[1]);
  if (!reference) return fail("guard", reference.error());
  const auto candidate = parse_trace(texts[2], paths[2]);
  if (!candidate) return fail("guard", candidate.error());
  if (reference->header == candidate->header)
    return fail("guard", {ErrorCode::BadUsage,
                          "both traces say that they come from the same configuration; their "
                          "difference says nothing of other kernels"});
  const auto found = measure::weigh_guard(*gaps, reference->points, candidate->points,
                                          {.thresholds = thresholds, .exact_cost = exact_cost});
  if (!found) return fail("guard", found.error());
  Json report = report_head("guard");
  report["gap_log"] = paths[0];
  report["reference"] = paths[1];
  report["candidate"] = paths[2];
  report["exact_cost"] = exact_cost;
  report.update(guard_json(*found));
  if (auto written = json.write(report); !written) return fail("guard", written.error());
  if (auto written = html.write(report); !written) return fail("guard", written.error());
  if (!json.is_stdout()) print_guard(*found, exact_cost);
  return kExitSuccess;
}

}  // namespace paceline::apps
