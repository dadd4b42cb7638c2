#include "apps/parity_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "apps/say.h"

namespace paceline::apps {
namespace {

using measure::ParityDifference;
using measure::ParityResult;
using measure::ParityRow;

Json row_json(const ParityRow& row) {
  Json json{{"op", row.op},
            {"shape", row.shape},
            {"type", row.type},
            {"isa", row.isa},
            {"numerics", row.numerics},
            {"width", row.width},
            {"outputs", row.outputs},
            {"bytes_different", row.bytes_different},
            {"bytes", row.bytes}};
  if (row.first) {
    json["different"] = row.different;
    json["first"] = Json{{"against", row.first->against}, {"row", row.first->row},
                         {"at", row.first->at},           {"got", row.first->got},
                         {"wanted", row.first->wanted},   {"threads", row.first->threads}};
  }
  return json;
}

// What was compared of one operation, shape and type: all widths together.
struct Line {
  std::string op, shape, type;
  int64_t bytes = 0;
  std::map<std::string, int64_t> different;  // by instruction set
  int64_t bytes_different = 0;
};

std::vector<Line> lines_of(const ParityResult& result) {
  std::vector<Line> lines;
  std::map<std::string, size_t> index;
  for (const ParityRow& row : result.rows) {
    const auto [found, is_new] =
        index.emplace(fmt::format("{}|{}|{}", row.op, row.shape, row.type), lines.size());
    if (is_new) lines.push_back({row.op, row.shape, row.type, 0, {}, 0});
    Line& line = lines[found->second];
    line.bytes += row.bytes;
    line.different[row.isa] += row.bytes_different;
    line.bytes_different += row.bytes_different;
  }
  return lines;
}

// Neighbouring lines of one operation and shape become one where nothing differs.
std::vector<Line> folded(std::vector<Line> lines) {
  std::vector<Line> few;
  for (Line& line : lines) {
    const bool joins = !few.empty() && few.back().op == line.op && few.back().shape == line.shape &&
                       few.back().bytes_different == 0 && line.bytes_different == 0;
    if (!joins) {
      few.push_back(std::move(line));
      continue;
    }
    few.back().type += " " + line.type;
    few.back().bytes += line.bytes;
    for (const auto& [isa, n] : line.different) few.back().different[isa] += n;
  }
  return few;
}

std::vector<std::string> tables_of(const ParityResult& result) {
  std::vector<std::string> names;
  for (const ParityRow& row : result.rows)
    if (std::find(names.begin(), names.end(), row.isa) == names.end()) names.push_back(row.isa);
  return names;
}

void print_differences(const ParityResult& result) {
  constexpr int kShown = 20;
  int64_t places = 0;
  for (const ParityRow& row : result.rows) {
    if (!row.first || ++places > kShown) continue;
    const ParityDifference& first = *row.first;
    say("{} {} {} on {}, width {}: {} of {} bytes; first in row {}, element {}: {} where {} "
        "gives {} ({} {})\n",
        row.op, row.shape, row.type, row.isa, row.width, row.bytes_different, row.bytes, first.row,
        first.at, first.got, first.against == "alone" ? "the row alone" : first.against,
        first.wanted, first.threads, first.threads == 1 ? "thread" : "threads");
  }
  if (places > kShown) say("... and {} more\n", places - kShown);
}

}  // namespace

void add_parity_json(const ParityResult& result, Json& report) {
  Json rows = Json::array();
  for (const ParityRow& row : result.rows) rows.push_back(row_json(row));
  report["rows"] = std::move(rows);
  report["bytes"] = result.bytes;
  report["bytes_different"] = result.bytes_different;
  report["not_run"] = result.not_run;
  report["complete"] = result.complete;
}

void print_parity_table(const ParityResult& result) {
  const auto tables = tables_of(result);
  const auto lines = folded(lines_of(result));
  size_t types = 4;
  for (const Line& line : lines) types = std::max(types, line.type.size());
  say("bytes that differ, by instruction set\n\n{:<18} {:<18} {:<{}} {:>11}", "operation", "shape",
      "type", types, "compared");
  for (const std::string& name : tables) say("  {:>11}", name);
  say("\n");
  for (const Line& line : lines) {
    say("{:<18} {:<18} {:<{}} {:>8.1f} MB", line.op, line.shape, line.type, types,
        static_cast<double>(line.bytes) / 1e6);
    for (const std::string& name : tables) {
      const auto found = line.different.find(name);
      say("  {:>11}", found == line.different.end() ? "-" : fmt::format("{}", found->second));
    }
    say("\n");
  }
  say("\n");
  print_differences(result);
  for (const std::string& what : result.not_run) say("not run: {}\n", what);
  say("{} of {} bytes differ{}\n", result.bytes_different, result.bytes,
      result.complete ? "" : "; interrupted, not all was compared");
}

}  // namespace paceline::apps
