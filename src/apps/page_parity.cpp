// The page of parity: bytes compared and bytes that differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/page_parts.h"
#include "apps/pages.h"

namespace paceline::apps {
namespace {

struct Tally {
  double bytes = 0;
  double different = 0;
};

using Names = std::vector<std::string>;

void note(Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void add(Tally& tally, const Json& row) {
  tally.bytes += number(at(row, "bytes")).value_or(0);
  tally.different += number(at(row, "bytes_different")).value_or(0);
}

// "product": the word in front, so that some hundred shapes become some ten bars.
std::string kind_of(const std::string& op) { return op.substr(0, op.find_first_of(" ,")); }

std::string megabytes(Value bytes) { return bytes ? shown(*bytes / 1e6, 1) + " MB" : "-"; }

}  // namespace

std::string parity_page(const Json& report) {
  Names ops, isas, lines;
  std::map<std::string, Tally> by_op;
  std::map<std::string, std::map<std::string, Tally>> by_line;  // operation, shape, type; set
  std::map<int, Tally> by_width;
  for (const Json& row : at(report, "rows")) {
    const std::string op = kind_of(text_of(at(row, "op")));
    const std::string isa = text_of(at(row, "isa"));
    const std::string line = fmt::format("{} {} {}", text_of(at(row, "op")),
                                         text_of(at(row, "shape")), text_of(at(row, "type")));
    note(ops, op);
    note(isas, isa);
    if (by_line.find(line) == by_line.end()) lines.push_back(line);
    add(by_op[op], row);
    add(by_line[line][isa], row);
    if (at(row, "width").is_number_integer()) add(by_width[at(row, "width").get<int>()], row);
  }

  Page page(title_of(report));
  page.subtitle(subtitle_of(report));
  const Value different = number(at(report, "bytes_different"));
  page.tile("differs", different == 0 ? "0 bytes" : megabytes(different),
            different == 0 ? Mood::Good : Mood::Bad);
  page.tile("compared", megabytes(number(at(report, "bytes"))));
  page.tile("instruction sets", fmt::format("{}", isas.size()));
  if (at(report, "complete") == false)
    page.paragraph("Interrupted: not all was compared.", Mood::Bad);
  for (const Json& what : at(report, "not_run")) page.paragraph("Not run: " + text_of(what));

  Plot by_op_plot{"operation", "MB compared", {}, {}, {}};
  Series compared{"compared", {}, Series::Form::Bars};
  Series differing{"different", {}, Series::Form::Bars};
  Table by_op_table{{"operation", "bytes", "different"}, {}};
  for (const std::string& op : ops) {
    by_op_plot.x.push_back(static_cast<double>(by_op_plot.x.size()));
    by_op_plot.x_names.push_back(op);
    compared.y.emplace_back(by_op[op].bytes / 1e6);
    differing.y.emplace_back(by_op[op].different / 1e6);
    by_op_table.rows.push_back({op, counted(by_op[op].bytes), counted(by_op[op].different)});
  }
  by_op_plot.series = {std::move(compared), std::move(differing)};
  if (!ops.empty())
    page.figure("By operation", "All shapes, types, widths and instruction sets together.",
                by_op_plot, by_op_table);

  Plot by_width_plot{"rows of the block", "bytes that differ", {}, {}, {}};
  Series faults{"different", {}, Series::Form::Bars};
  Table by_width_table{{"rows", "bytes", "different"}, {}};
  for (const auto& [width, tally] : by_width) {
    by_width_plot.x.push_back(width);
    faults.y.emplace_back(tally.different);
    by_width_table.rows.push_back(
        {fmt::format("{}", width), counted(tally.bytes), counted(tally.different)});
  }
  by_width_plot.series.push_back(std::move(faults));
  if (!by_width.empty())
    page.figure("By width", "A row in a block of so many rows, against the same row alone.",
                by_width_plot, by_width_table);

  Table table{{"operation, shape, type", "bytes"}, {}};
  for (const std::string& isa : isas) table.columns.push_back("different, " + isa);
  for (const std::string& line : lines) {
    double bytes = 0;
    for (const auto& [isa, tally] : by_line[line]) bytes += tally.bytes;
    std::vector<std::string> row = {line, counted(bytes)};
    for (const std::string& isa : isas) {
      const auto found = by_line[line].find(isa);
      row.push_back(found == by_line[line].end() ? "-" : counted(found->second.different));
    }
    table.rows.push_back(std::move(row));
  }
  page.heading("Every operation");
  page.table(table);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps
