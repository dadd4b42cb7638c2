// The page of a training run: loss, and acceptance on streams that were held out.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/page_parts.h"
#include "apps/pages.h"

namespace paceline::apps {
namespace {

// Fields of every entry that has a step, over the steps. Entries are taken in their order.
void add_fields(const Json& history, const std::vector<std::pair<std::string, std::string>>& fields,
                const std::string& title, const std::string& note, Page& page) {
  Plot plot{"step", title, {}, {}, {}};
  Table table{{"step"}, {}};
  for (const auto& [field, name] : fields) {
    plot.series.push_back({name, {}});
    table.columns.push_back(name);
  }
  for (const Json& entry : history) {
    const Value step = number(at(entry, "step"));
    if (!step || (!plot.x.empty() && *step <= plot.x.back())) continue;
    plot.x.push_back(*step);
    table.rows.push_back({counted(step)});
    for (size_t i = 0; i < fields.size(); ++i) {
      Value value = number(at(entry, fields[i].first));
      if (fields[i].first == "loss" && *step == 0) value = std::nullopt;  // of no step
      plot.series[i].y.push_back(value);
      table.rows.back().push_back(shown(value, 4));
    }
  }
  const auto has_value = [](const Series& line) {
    return std::ranges::any_of(line.y, [](const Value& y) { return y.has_value(); });
  };
  if (std::ranges::any_of(plot.series, has_value)) page.figure(title, note, plot, table);
}

void add_acceptance_over_steps(const Json& history, Page& page) {
  Plot plot{"step", "joint acceptance", {}, {}, {}};
  Table table{{"step"}, {}};
  std::vector<std::vector<Value>> rows;
  size_t depths = 0;
  for (const Json& entry : history) {
    const Value step = number(at(entry, "step"));
    auto row = numbers(at(entry, "joint_acceptance"));
    if (!step || row.empty() || (!plot.x.empty() && *step <= plot.x.back())) continue;
    plot.x.push_back(*step);
    depths = std::max(depths, row.size());
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  for (size_t d = 0; d < depths; ++d) {
    Series line{fmt::format("depth {}", d + 1), {}};
    for (const auto& row : rows) line.y.push_back(d < row.size() ? row[d] : std::nullopt);
    table.columns.push_back(line.name);
    plot.series.push_back(std::move(line));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    table.rows.push_back({counted(plot.x[i])});
    for (size_t d = 0; d < depths; ++d)
      table.rows[i].push_back(d < rows[i].size() ? shown(rows[i][d], 4) : "-");
  }
  page.figure("Acceptance over steps",
              "On held-out streams, replayed as a live run drafts them: rounds in which the drafts "
              "up to this depth all stood.",
              plot, table);
}

void add_before_and_after(const Json& report, Page& page) {
  Plot plot{"depth of the draft", "joint acceptance", {}, {}, {}};
  Table table{{"depth"}, {}};
  const size_t n = std::max(at(at(report, "baseline"), "joint_acceptance").size(),
                            at(at(report, "best"), "joint_acceptance").size());
  if (n == 0) return;
  for (size_t d = 1; d <= n; ++d) {
    plot.x.push_back(static_cast<double>(d));
    table.rows.push_back({fmt::format("{}", d)});
  }
  for (const char* name : {"baseline", "best"}) {
    auto y = numbers(at(at(report, name), "joint_acceptance"));
    if (y.empty()) continue;
    y.resize(n);
    table.columns.emplace_back(name);
    for (size_t d = 0; d < n; ++d) table.rows[d].push_back(shown(y[d], 4));
    plot.series.push_back({name, std::move(y)});
  }
  page.figure("Acceptance by depth", "Before the first step, and of the best head.", plot, table);
}

}  // namespace

std::string train_page(const Json& report) {
  Page page(title_of(report));
  page.subtitle(subtitle_of(report));
  page.tile("steps", counted(number(at(report, "steps"))));
  page.tile("positions", counted(number(at(report, "positions"))));
  page.tile("E before", shown(number(at(at(report, "baseline"), "expected")), 3));
  page.tile("E, best", shown(number(at(at(report, "best"), "expected")), 3));
  page.tile("minutes", [&] {
    const Value seconds = number(at(report, "seconds"));
    return shown(seconds ? Value(*seconds / 60) : std::nullopt, 1);
  }());
  const Json& history = at(report, "history");
  add_fields(history, {{"loss", "training"}, {"held_out_loss", "held out"}}, "Loss",
             "In nats: of the steps since the point before, and of streams that were held out.",
             page);
  add_fields(history, {{"expected", "E"}}, "Accepted drafts a round",
             "On held-out streams; a round writes 1 + E tokens.", page);
  add_acceptance_over_steps(history, page);
  add_before_and_after(report, page);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps
