#include "apps/bench_floors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/text_file.h"
#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

constexpr const char* kEvery = "*";
constexpr const char* kMeasures[] = {"speedup", "tokens_per_round"};

// The floor held against the arm. Counts are exact: they have no interval.
HeldFloor held_floor(const std::string& category, const measure::ArmSummary& arm,
                     const std::string& name, double floor) {
  HeldFloor held{category, arm.shape, name, floor, {}, {}};
  if (name == "speedup") {
    if (arm.pairs > 0) held.found = arm.speedup.value;
    held.interval = arm.speedup.interval;
  } else if (arm.counts.rounds > 0) {
    held.found =
        static_cast<double>(arm.counts.round_tokens) / static_cast<double>(arm.counts.rounds);
  }
  return held;
}

std::string found_text(const HeldFloor& floor) {
  if (!floor.found) return "not measured";
  if (!floor.interval) return fmt::format("{:.3f}", *floor.found);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", *floor.found, floor.interval->low,
                     floor.interval->high);
}

std::string shown_category(const std::string& category) {
  return category.empty() ? "without category" : category;
}

}  // namespace

Result<BenchFloors> read_bench_floors(const std::string& file,
                                      const std::set<std::string>& categories) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadUsage, fmt::format("--floors {}: {}", file, what)};
  };
  const auto text = read_text("--floors", file);
  if (!text) return text.error();
  const Json json = parse_json<Json>(*text);
  if (!json.is_object()) return bad("not a JSON object");
  BenchFloors floors;
  for (const auto& [name, of_categories] : json.items()) {
    if (std::ranges::find(kMeasures, name) == std::end(kMeasures))
      return bad(fmt::format("{} is no measure; known are speedup and tokens_per_round",
                             quoted_name(name)));
    if (!of_categories.is_object())
      return bad(fmt::format("{} wants an object of categories", name));
    for (const auto& [category, floor] : of_categories.items()) {
      if (category != kEvery && !categories.contains(category))
        return bad(fmt::format("no prompt is of the category {}", quoted_name(category)));
      const double value = floor.is_number() ? floor.get<double>() : -1;
      if (!std::isfinite(value) || value < 0)
        return bad(fmt::format("{} of {} wants a number from 0 on", name, quoted_name(category)));
      floors.by_measure[name][category] = value;
    }
  }
  if (floors.by_measure.empty()) return bad("it names no floor");
  return floors;
}

std::vector<HeldFloor> hold_floors(const BenchFloors& floors, const measure::BenchResult& result) {
  std::vector<HeldFloor> held;
  for (const auto& [category, arms] : result.by_category) {
    for (const auto& [name, of_categories] : floors.by_measure) {
      auto floor = of_categories.find(category);
      if (floor == of_categories.end()) floor = of_categories.find(kEvery);
      if (floor == of_categories.end()) continue;
      for (const measure::ArmSummary& arm : arms)
        if (arm.shape.depth != 0) held.push_back(held_floor(category, arm, name, floor->second));
    }
  }
  return held;
}

Json floors_json(const std::vector<HeldFloor>& held) {
  Json list = Json::array();
  for (const HeldFloor& floor : held) {
    list.push_back(
        Json{{"category", floor.category},
             {"depth", depth_json(floor.shape)},
             {"tree", tree_json(floor.shape)},
             {"measure", floor.measure},
             {"floor", floor.floor},
             {"found", floor.found ? Json(*floor.found) : Json(nullptr)},
             {"interval", floor.interval ? Json::array({floor.interval->low, floor.interval->high})
                                         : Json(nullptr)},
             {"reached", floor.reached()},
             {"holds", floor.holds()}});
  }
  return list;
}

void print_floors(const std::vector<HeldFloor>& held) {
  const auto n = std::ranges::count_if(held, &HeldFloor::holds);
  say("floors: {} of {} hold\n", n, held.size());
  for (const HeldFloor& floor : held) {
    if (floor.reached()) continue;
    say("  {}, depth {}: {} {}, the floor is {}{}\n", shown_category(floor.category),
        shape_name(floor.shape), floor.measure, found_text(floor), floor.floor,
        floor.holds() ? ": below it, but not beyond the noise" : "");
  }
}

}  // namespace paceline::apps
