// The page of guard: what it costs to read a round again where two tokens are close.
#include <fmt/format.h>

#include "apps/page_parts.h"
#include "apps/pages.h"

namespace paceline::apps {
namespace {

// One line a field of the rows, over thresholds that stand side by side.
void add_rows(const Json& rows, const std::vector<std::pair<std::string, std::string>>& fields,
              const std::string& title, const std::string& y_label, const std::string& note,
              bool as_percent, Page& page) {
  Plot plot{"threshold", y_label, {}, {}, {}};
  Table table{{"threshold"}, {}};
  for (const auto& [field, name] : fields) {
    plot.series.push_back({name, {}});
    table.columns.push_back(name);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = at(rows, i);
    const Value threshold = number(at(row, "threshold"));
    if (!threshold) continue;
    plot.x.push_back(static_cast<double>(plot.x.size()));
    plot.x_names.push_back(fmt::format("{:.3g}", *threshold));
    table.rows.push_back({plot.x_names.back()});
    for (size_t k = 0; k < fields.size(); ++k) {
      const Value value = number(at(row, fields[k].first));
      plot.series[k].y.push_back(value && as_percent ? Value(100 * *value) : value);
      table.rows.back().push_back(as_percent ? percent(value, 2) : shown(value, 3));
    }
  }
  if (plot.x.empty()) return;
  if (!as_percent)
    plot.series.push_back(
        {"always exact", std::vector<Value>(plot.x.size(), 1.0), Series::Form::Dashed});
  page.figure(title, note, plot, table);
}

}  // namespace

std::string guard_page(const Json& report) {
  Page page("guard");
  page.subtitle(subtitle_of(report));
  const Json& rows = at(report, "rows");
  const Value break_even = number(at(report, "break_even"));
  page.tile("rounds", counted(number(at(report, "rounds"))));
  page.tile("gaps", counted(number(at(report, "gaps"))));
  page.tile("positions of the traces", counted(number(at(report, "positions"))));
  page.tile("largest movement", shown(number(at(report, "largest_movement")), 3));
  page.tile("an exact round costs", shown(number(at(report, "exact_cost")), 2));
  page.tile("covering all pays from", break_even ? shown(break_even, 3) : "never");
  if (at(report, "thin") == true)
    page.paragraph(
        fmt::format("The sample is thin: movements larger than any seen cannot be ruled out at a "
                    "rate of {:.2g}. Trace a longer text.",
                    number(at(report, "unseen_rate")).value_or(0)),
        Mood::Bad);
  add_rows(rows, {{"cost", "guarded"}}, "Cost against threshold", "cost, in exact rounds",
           "A fast round, and an exact one where two tokens are closer than the threshold. Below "
           "the dashed line the guard pays.",
           /*as_percent=*/false, page);
  add_rows(rows, {{"coverage", "movements covered"}, {"ambiguous", "rounds read again"}},
           "What a threshold covers", "%",
           "Movements between the two traces that are no larger, and rounds with a gap below it.",
           /*as_percent=*/true, page);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps
