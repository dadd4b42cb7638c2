#include "apps/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "apps/report_fields.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "measure/pass_watch.h"

namespace paceline::apps {
namespace {

constexpr const char* kArmFields[] = {
    "tokens_per_second",        "speedup",          "speedup_interval",
    "speedup_interval_prompts", "speedup_overall",  "speedup_overall_interval",
    "tokens_per_round",         "joint_acceptance",
};

// Of the same depth and as many drafts of a tree; an automatic tree is none that is named.
const Json* arm_like(const Json& report, const Json& wanted) {
  for (const Json& arm : at(report, "arms"))
    if (at(arm, "depth") == at(wanted, "depth") &&
        number(at(arm, "tree")) == number(at(wanted, "tree")))
      return &arm;
  return nullptr;
}

// Whether all intervals have a point in common; null where one is missing.
Json agree(const Json& intervals) {
  Value low, high;
  for (const Json& interval : intervals) {
    const Value l = number(at(interval, 0));
    const Value h = number(at(interval, 1));
    if (!l || !h) return nullptr;
    low = std::max(low.value_or(*l), *l);
    high = std::min(high.value_or(*h), *h);
  }
  return low && high ? Json(*low <= *high) : Json(nullptr);
}

Json arms_of(const std::vector<Json>& reports) {
  Json arms = Json::array();
  for (const Json& first : at(reports[0], "arms")) {
    const Json& depth = at(first, "depth");
    if (depth.is_null()) continue;
    Json arm{{"depth", depth}, {"tree", at(first, "tree")}, {"drafter", Json::array()}};
    for (const char* field : kArmFields) arm[field] = Json::array();
    bool everywhere = true;
    for (const Json& report : reports) {
      const Json* const found = arm_like(report, first);
      everywhere = everywhere && found != nullptr;
      if (!everywhere) break;
      arm["drafter"].push_back(at(*found, "drafter"));
      for (const char* field : kArmFields) arm[field].push_back(at(*found, field));
    }
    if (!everywhere) continue;
    arm["agree"] = depth == 0 ? Json(nullptr) : agree(arm["speedup_interval"]);
    arms.push_back(std::move(arm));
  }
  return arms;
}

// Mean costs of a pass of a few rows that are so much apart are of a machine in other states: what
// speculation gains there is not the same.
constexpr double kSameState = 1.07;

// Whether the machine was in the same state, on average, in all runs; null where one does not say.
Json same_state(const std::vector<Json>& reports) {
  Value low, high;
  for (const Json& report : reports) {
    const Value mean = number(at(at(report, "watched"), "mean"));
    if (!mean) return nullptr;
    low = std::min(low.value_or(*mean), *mean);
    high = std::max(high.value_or(*mean), *mean);
  }
  return low && high ? Json(*high <= kSameState * *low) : Json(nullptr);
}

// Numbers of a report with their names: "draft_cost", "bandwidth.reached", "joint_acceptance[1]".
void collect_numbers(const Json& json, const std::string& name, int levels,
                     std::vector<std::pair<std::string, double>>& found) {
  constexpr size_t kLongest = 32;  // lists beyond this are data, not measures
  if (const Value value = number(json)) {
    found.emplace_back(name, *value);
  } else if (levels > 0 && json.is_object()) {
    for (const auto& [field, inner] : json.items())
      collect_numbers(inner, name.empty() ? field : fmt::format("{}.{}", name, field), levels - 1,
                      found);
  } else if (levels > 0 && json.is_array() && json.size() <= kLongest &&
             number(at(json, 0)).has_value()) {
    for (size_t i = 0; i < json.size(); ++i)
      collect_numbers(at(json, i), fmt::format("{}[{}]", name, i + 1), levels - 1, found);
  }
}

// Without the head and other conditions, and without arms, which have columns of their own.
Json numbers_only(const Json& report) {
  constexpr std::array kConditions = {"arms",     "by_category", "round_cost",     "context",
                                      "sampling", "gate",        "repeats",        "max_tokens",
                                      "prompts",  "machine_use", "huge_page_bytes"};
  const Json head = report_head("");
  Json rest = Json::object();
  for (const auto& [name, value] : report.items()) {
    const bool skipped = head.contains(name) || std::find(kConditions.begin(), kConditions.end(),
                                                          name) != kConditions.end();
    if (!skipped) rest[name] = value;
  }
  return rest;
}

Json measures_of(const std::vector<Json>& reports) {
  constexpr int kLevels = 3;
  std::vector<std::vector<std::pair<std::string, double>>> numbers(reports.size());
  for (size_t i = 0; i < reports.size(); ++i)
    collect_numbers(numbers_only(reports[i]), "", kLevels, numbers[i]);
  Json measures = Json::array();
  for (const auto& [name, value] : numbers[0]) {
    Json values = Json::array();
    for (const auto& list : numbers) {
      const auto found =
          std::find_if(list.begin(), list.end(),
                       [&, &wanted = name](const auto& entry) { return entry.first == wanted; });
      values.push_back(found == list.end() ? Json(nullptr) : Json(found->second));
    }
    measures.push_back(Json{{"name", name}, {"values", std::move(values)}});
  }
  return measures;
}

void print_row(std::string_view name, const Json& values, int decimals) {
  say("{:<34}", name);
  for (const Json& value : values) say(" {:>16}", shown(number(value), decimals));
  const Value first = number(at(values, 0));
  const Value last = values.empty() ? std::nullopt : number(values.back());
  if (first && last && *first != 0) say(" {:>8.3f}", *last / *first);
  say("\n");
}

std::string interval_of(const Json& interval) {
  const Value low = number(at(interval, 0));
  const Value high = number(at(interval, 1));
  return low && high ? fmt::format("[{:.2f}, {:.2f}]", *low, *high) : "-";
}

void print_intervals(std::string_view name, const Json& intervals, std::string_view verdict = "") {
  say("{:<34}", name);
  for (const Json& interval : intervals) say(" {:>16}", interval_of(interval));
  say("{}\n", verdict);
}

void print_arm(const Json& arm) {
  const Value tree = number(at(arm, "tree"));
  const std::string name =
      "depth " + text_of(at(arm, "depth")) + (tree ? fmt::format(":{:.0f}", *tree) : "");
  print_row(name + " tokens/s", at(arm, "tokens_per_second"), 1);
  print_row(name + " tokens/round", at(arm, "tokens_per_round"), 3);
  if (at(arm, "depth") == 0) return;
  print_row(name + " speedup", at(arm, "speedup"), 3);
  const Json& same = at(arm, "agree");
  print_intervals(name + " run again, 95 %", at(arm, "speedup_interval"),
                  same.is_null() ? "  not judged without repeats"
                  : same == true ? "  agree"
                                 : "  do not agree");
  print_intervals(name + " other prompts", at(arm, "speedup_interval_prompts"));
  print_row(name + " overall", at(arm, "speedup_overall"), 3);
  print_intervals(name + " overall again", at(arm, "speedup_overall_interval"));
}

}  // namespace

void add_side_by_side(const std::vector<std::string>& paths, const std::vector<Json>& reports,
                      const std::vector<Unfair>& unfair, Json& side_by_side) {
  side_by_side["compared"] = at(reports[0], "command");
  Json runs = Json::array();
  for (size_t i = 0; i < reports.size(); ++i) {
    Json run{{"file", paths[i]}};
    for (const char* name : {"version", "commit", "binary_sha256", "model", "noisy",
                             "noisy_because", "identical", "complete"})
      run[name] = at(reports[i], name);
    runs.push_back(std::move(run));
  }
  side_by_side["runs"] = std::move(runs);
  side_by_side["fair"] = unfair.empty();
  Json conditions = Json::array();
  for (const Unfair& one : unfair)
    conditions.push_back(Json{{"field", one.field}, {"why", one.why}, {"values", one.values}});
  side_by_side["unfair"] = std::move(conditions);
  side_by_side["same_state"] = same_state(reports);
  side_by_side["arms"] = arms_of(reports);
  side_by_side["measures"] = measures_of(reports);
}

std::string changed_machine(const Json& side_by_side) {
  if (at(side_by_side, "same_state") != false) return {};
  return fmt::format(
      "the machine changed between the runs (watched: a pass of {} rows over one), which moves "
      "speedups by as much",
      measure::Watched::kRows);
}

void print_side_by_side(const Json& side_by_side) {
  for (const Json& condition : at(side_by_side, "unfair"))
    say("unfair: {} ({}): {}\n", text_of(at(condition, "field")), text_of(at(condition, "why")),
        text_of(at(condition, "values")));
  say("{:<34}", "");
  for (const Json& run : at(side_by_side, "runs")) {
    const std::string name = base_name(text_of(at(run, "file")));
    say(" {:>16}", name.size() > 16 ? ".." + name.substr(name.size() - 14) : name);
  }
  say(" {:>8}\n", "ratio");
  say("{:<34}", "commit");
  for (const Json& run : at(side_by_side, "runs"))
    say(" {:>16}", text_of(at(run, "commit")).substr(0, 16));
  say("\n");
  for (const Json& arm : at(side_by_side, "arms")) print_arm(arm);
  for (const Json& measure : at(side_by_side, "measures")) {
    const Value first = number(at(at(measure, "values"), 0));
    const bool whole = first && std::floor(*first) == *first;
    print_row(text_of(at(measure, "name")), at(measure, "values"), whole ? 0 : 4);
  }
  if (const std::string changed = changed_machine(side_by_side); !changed.empty())
    say("{}\n", changed);
  for (const Json& run : at(side_by_side, "runs"))
    if (at(run, "noisy") == true)
      say("{} is noisy: {}\n", text_of(at(run, "file")), text_of(at(run, "noisy_because")));
}

}  // namespace paceline::apps
