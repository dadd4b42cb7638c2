#include "apps/page_parts.h"

#include <fmt/format.h>

namespace paceline::apps {
namespace {

// "0.5 to 1", "5 and more"
std::string bucket_name(const Json& row) {
  const std::string from = text_of(at(row, "from"));
  return number(at(row, "to")) ? fmt::format("{} to {}", from, text_of(at(row, "to")))
                               : fmt::format("{} and more", from);
}

}  // namespace

std::string title_of(const Json& report) {
  const std::string command = text_of(at(report, "command"));
  const Json& model = at(report, "model");
  return model.is_string() ? fmt::format("{} of {}", command, base_name(model)) : command;
}

std::string subtitle_of(const Json& report) {
  std::string text;
  const auto add = [&](const Json& value, std::string_view form) {
    if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()))
      return;
    text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(form), text_of(value));
  };
  const Json& threads = at(report, "threads");
  add(threads, threads == 1 ? "{} thread" : "{} threads");
  add(at(report, "instruction_set"), "{}");
  add(at(report, "numerics"), "{} numerics");
  add(at(report, "cpu"), "{}");
  if (const Value load = number(at(at(report, "machine_load"), 0)))
    add(Json(shown(load, 2)), "load {}");
  add(at(report, "commit"), "commit {}");
  return text;
}

Table head_table(const Json& report) {
  Table table{{"condition", "value"}, {}};
  for (const char* name : {"command",         "report",      "version",      "commit",
                           "binary_sha256",   "model",       "model_sha256", "head_sha256",
                           "prompts_sha256",  "family",      "numerics",     "kernels",
                           "instruction_set", "threads",     "weights",      "cache",
                           "context",         "page_size",   "cpu",          "cpus",
                           "machine_load",    "machine_use", "seed",         "sampling",
                           "max_tokens",      "repeats",     "drafter",      "gate",
                           "allow_inexact",   "warnings"}) {
    const Json& value = at(report, name);
    if (!value.is_null() && value != Json::array()) table.rows.push_back({name, text_of(value)});
  }
  return table;
}

std::string arm_name(const Json& arm) {
  std::string name = "depth " + text_of(at(arm, "depth"));
  if (const auto tree = number(at(arm, "tree")))  // "auto" is none
    name += *tree > 0 ? fmt::format(", tree of {:.0f}", *tree) : ", a chain";
  return name;
}

void add_by_gap(const Json& by_gap, bool with_positions, Page& page) {
  Plot share{"gap between the two largest logits", "differing, %", {}, {}, {}};
  Plot count{"gap between the two largest logits", "positions", {}, {}, {}};
  Series differing{"choose differently", {}, Series::Form::Bars};
  Series positions{"positions", {}, Series::Form::Bars};
  Table table{{"gap", "positions", "differing", "share"}, {}};
  for (size_t i = 0; i < by_gap.size(); ++i) {
    const Json& row = at(by_gap, i);
    const Value n = number(at(row, "positions"));
    const Value k = number(at(row, "differing"));
    const Value rate = n && k && *n > 0 ? Value(*k / *n) : std::nullopt;
    share.x.push_back(static_cast<double>(i));
    share.x_names.push_back(bucket_name(row));
    differing.y.push_back(rate ? Value(100 * *rate) : std::nullopt);
    positions.y.push_back(n);
    table.rows.push_back({bucket_name(row), counted(n), counted(k), percent(rate, 3)});
  }
  if (share.x.empty()) return;
  count.x = share.x;
  count.x_names = share.x_names;
  share.series.push_back(std::move(differing));
  count.series.push_back(std::move(positions));
  page.figure("Disagreement by gap",
              "How often the two choose differently, by how far the second likeliest token was "
              "behind the likeliest. Where kernels only round differently, it is near ties that "
              "flip; a fault in a cache or a mask flips decided positions too.",
              share, table);
  if (!with_positions) return;
  page.figure("Gap histogram", "How decided the text is: positions by gap.", count,
              {{"gap", "positions"}, [&] {
                 std::vector<std::vector<std::string>> rows;
                 for (const auto& row : table.rows) rows.push_back({row[0], row[1]});
                 return rows;
               }()});
}

}  // namespace paceline::apps
