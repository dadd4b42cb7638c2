// The page of runs side by side.
#include <fmt/format.h>

#include <algorithm>

#include "apps/page_parts.h"
#include "apps/pages.h"
#include "apps/side_by_side.h"

namespace paceline::apps {
namespace {

std::vector<std::string> run_names(const Json& report) {
  std::vector<std::string> names;
  for (const Json& run : at(report, "runs")) names.push_back(base_name(text_of(at(run, "file"))));
  return names;
}

// One field of every arm: a line a run, arms in order.
void add_arms(const Json& report, std::string_view field, const std::string& title,
              const std::string& note, int decimals, Page& page) {
  const auto names = run_names(report);
  Plot plot{"arm", title, {}, {}, {}};
  for (const std::string& name : names) plot.series.push_back({name, {}, Series::Form::Points});
  Table table{{"arm"}, {}};
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  const bool speedup = field == "speedup";
  if (speedup) table.columns.emplace_back("intervals");
  for (const Json& arm : at(report, "arms")) {
    plot.x.push_back(static_cast<double>(plot.x.size()));
    plot.x_names.push_back(arm_name(arm));
    std::vector<std::string> row = {arm_name(arm)};
    for (size_t i = 0; i < names.size(); ++i) {
      const Value value = number(at(at(arm, field), i));
      plot.series[i].y.push_back(value);
      if (speedup) {
        const Json& interval = at(at(arm, "speedup_interval"), i);
        plot.series[i].interval.emplace_back(number(at(interval, 0)), number(at(interval, 1)));
      }
      row.push_back(shown(value, decimals));
    }
    if (speedup) {
      const Json& same = at(arm, "agree");
      row.emplace_back(at(arm, "depth") == 0 ? "-"
                       : same.is_null()      ? "not judged"
                       : same == true        ? "agree"
                                             : "do not agree");
    }
    table.rows.push_back(std::move(row));
  }
  if (!plot.x.empty()) page.figure(title, note, plot, table);
}

void add_acceptance(const Json& report, Page& page) {
  const auto names = run_names(report);
  const Json* deepest = nullptr;
  for (const Json& arm : at(report, "arms")) {
    const size_t n = at(at(arm, "joint_acceptance"), 0).size();
    if (n > 0 && (deepest == nullptr || n > at(at(*deepest, "joint_acceptance"), 0).size()))
      deepest = &arm;
  }
  if (deepest == nullptr) return;
  Plot plot{"depth of the draft", "joint acceptance", {}, {}, {}};
  Table table{{"depth"}, {}};
  size_t n = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    auto y = numbers(at(at(*deepest, "joint_acceptance"), i));
    while (!y.empty() && !y.back()) y.pop_back();  // depths that no round went to
    n = std::max(n, y.size());
  }
  for (size_t d = 1; d <= n; ++d) {
    plot.x.push_back(static_cast<double>(d));
    table.rows.push_back({fmt::format("{}", d)});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    auto y = numbers(at(at(*deepest, "joint_acceptance"), i));
    y.resize(n);
    table.columns.push_back(names[i]);
    for (size_t d = 0; d < n; ++d) table.rows[d].push_back(shown(y[d], 3));
    plot.series.push_back({names[i], std::move(y)});
  }
  page.figure("Acceptance by depth", "Joint acceptance of the arm at " + arm_name(*deepest) + ".",
              plot, table);
}

}  // namespace

std::string report_page(const Json& report) {
  Page page(fmt::format("{} side by side", text_of(at(report, "compared"))));
  const auto names = run_names(report);
  for (const Json& condition : at(report, "unfair"))
    page.paragraph(
        fmt::format("Not a fair comparison: {} ({}): {}", text_of(at(condition, "field")),
                    text_of(at(condition, "why")), text_of(at(condition, "values"))),
        Mood::Bad);
  if (const std::string changed = changed_machine(report); !changed.empty())
    page.paragraph(changed, Mood::Bad);
  Table runs{{"run", "version", "commit", "model", "noisy"}, {}};
  for (const Json& run : at(report, "runs"))
    runs.rows.push_back({base_name(text_of(at(run, "file"))), text_of(at(run, "version")),
                         text_of(at(run, "commit")), base_name(text_of(at(run, "model"))),
                         yes_or_no(at(run, "noisy"))});
  page.heading("Runs");
  page.table(runs);
  add_arms(report, "speedup", "Speedup",
           "Over the plain arm of the same run. Whiskers are where other runs of the same prompts "
           "would have it with 95 % confidence; runs agree where these intervals have a point in "
           "common, and are not judged where prompts were run once.",
           3, page);
  add_arms(report, "tokens_per_second", "Tokens a second", "Medians over runs of a prompt.", 1,
           page);
  add_acceptance(report, page);
  Table measures{{"measure"}, {}};
  measures.columns.insert(measures.columns.end(), names.begin(), names.end());
  for (const Json& measure : at(report, "measures")) {
    std::vector<std::string> row = {text_of(at(measure, "name"))};
    for (size_t i = 0; i < names.size(); ++i) row.push_back(text_of(at(at(measure, "values"), i)));
    measures.rows.push_back(std::move(row));
  }
  page.heading("Every number");
  page.table(measures);
  page.details("Conditions of this comparison", head_table(report));
  return page.html();
}

}  // namespace paceline::apps
