// paceline report: runs side by side, or the page of one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/commands.h"
#include "apps/fairness.h"
#include "apps/html_file.h"
#include "apps/json_file.h"
#include "apps/report_fields.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/side_by_side.h"
#include "apps/text_file.h"
#include "apps/values.h"
#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

struct ReportFlags {
  std::vector<std::string> paths;
  bool allow_unfair = false;
  JsonFile json;
  HtmlFile html;
};

Result<Json> read_report(const std::string& path) {
  const auto text = read_text("report", path);
  if (!text) return text.error();
  Json report = parse_json<Json>(*text);
  const Json& form = at(report, "report");
  if (!at(report, "command").is_string() || !form.is_number_integer())
    return Error{ErrorCode::BadFormat,
                 path + ": wants a report as --json writes it, with \"command\" and \"report\""};
  if (form != kReportVersion)
    return Error{ErrorCode::Unsupported,
                 fmt::format("{}: a report of form {}; this program reads form {}", path,
                             text_of(form), kReportVersion)};
  return report;
}

Result<std::vector<Json>> read_reports(const std::vector<std::string>& paths) {
  std::vector<Json> reports;
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code ignored;
    for (size_t j = 0; j < i; ++j)
      if (std::filesystem::equivalent(paths[i], paths[j], ignored))
        return Error{ErrorCode::BadUsage, paths[i] + " is given twice"};
    auto report = read_report(paths[i]);
    if (!report) return report.error();
    if (!reports.empty() && at(*report, "command") != at(reports[0], "command"))
      return Error{ErrorCode::BadUsage,
                   fmt::format("{} is a report of {} and {} one of {}", paths[0],
                               quoted_name(text_of(at(reports[0], "command"))), paths[i],
                               quoted_name(text_of(at(*report, "command"))))};
    reports.push_back(*std::move(report));
  }
  return reports;
}

int run(const ReportFlags& given) {
  const auto reports = read_reports(given.paths);
  if (!reports) return fail("report", reports.error());
  if (reports->size() == 1) {
    if (!given.html.wanted())
      return fail("report", {ErrorCode::BadUsage,
                             "wants two reports or more to lay side by side, or --html for the "
                             "page of one"});
    auto written = given.html.write(reports->front());
    if (written) written = given.json.write(reports->front());
    return written ? kExitSuccess : fail("report", written.error());
  }
  const auto unfair = unfair_conditions(*reports);
  if (!unfair.empty() && !given.allow_unfair)
    return fail("report", {ErrorCode::BadUsage,
                           fmt::format("not a fair comparison: {}; --allow-unfair lays them side "
                                       "by side all the same",
                                       listed(unfair))});
  Json report = report_head("report");
  add_side_by_side(given.paths, *reports, unfair, report);
  if (at(report, "arms").empty() && at(report, "measures").empty())
    return fail("report", {ErrorCode::BadUsage,
                           fmt::format("reports of {} hold no numbers to lay side by side",
                                       quoted_name(text_of(at(reports->front(), "command"))))});
  if (!given.json.is_stdout()) print_side_by_side(report);
  auto written = given.json.write(report);
  if (written) written = given.html.write(report);
  return written ? kExitSuccess : fail("report", written.error());
}

}  // namespace

int report(Args args) {
  ReportFlags given;
  Flags flags("report",
              "Lay reports of one command side by side. Pairs that are not fair (another trunk or "
              "head, other prompts, another machine, other numerics, instruction set, threads) are "
              "refused, and what differs is named. Of a single report: its page.",
              "paceline report before.json after.json --html compared.html");
  flags.positionals("REPORT", given.paths, "what --json wrote");
  flags.flag("--allow-unfair", given.allow_unfair, "side by side all the same; marks the report");
  flags.group("Output");
  given.json.add_flag(flags);
  given.html.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("report", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = check_outputs({given.json.file(), given.html.file()}, given.paths); !ok)
    return fail("report", ok.error());
  return run(given);
}

}  // namespace paceline::apps
