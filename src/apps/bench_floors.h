// Floors of `bench`: what every speculative arm must reach in each category.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/json_file.h"
#include "base/result.h"
#include "measure/bench.h"

namespace paceline::apps {

// {"speedup": {"*": 0.98, "code": 1.5}, "tokens_per_round": {"chat": 2}}: "*" stands for every
// category that is not named.
struct BenchFloors {
  // "speedup" or "tokens_per_round", then categories.
  std::map<std::string, std::map<std::string, double>> by_measure;
};

// Refused: measures and categories that are not known, and what is no number from 0 on.
Result<BenchFloors> read_bench_floors(const std::string& file,
                                      const std::set<std::string>& categories);

// A floor held against what was measured; where nothing was, it does not hold. A speedup below its
// floor fails it only beyond the noise of the repeats: when its interval over these prompts lies
// below. How other prompts would do is another question, and a single repeat has no noise to go by.
struct HeldFloor {
  std::string category;
  DraftShape shape;
  std::string measure;
  double floor = 0;
  std::optional<double> found;
  std::optional<measure::Interval> interval;
  bool reached() const { return found && *found >= floor; }
  bool holds() const { return reached() || (interval && interval->high >= floor); }
};
std::vector<HeldFloor> hold_floors(const BenchFloors& floors, const measure::BenchResult& result);

Json floors_json(const std::vector<HeldFloor>& held);
// One line for all, and one for each that was not reached.
void print_floors(const std::vector<HeldFloor>& held);

}  // namespace paceline::apps
