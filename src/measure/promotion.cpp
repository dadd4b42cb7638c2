#include "measure/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace paceline::measure {
namespace {

constexpr int kResamples = 10'000;
constexpr double kLevel = 0.05;
// Heads that are alike rise on all of n prompts once in 2^n times, and that may be once in 40.
// Resampling does not see it: a prompt alone gives an interval of no width.
constexpr int kFewestPrompts = 6;

// One prompt under both heads.
struct Pair {
  const PromptRounds* before;
  const PromptRounds* after;
};

struct Sums {
  int64_t rounds[2] = {0, 0};
  int64_t tokens[2] = {0, 0};

  void add(const Pair& pair) {
    const PromptRounds* sides[] = {pair.before, pair.after};
    for (int i = 0; i < 2; ++i) {
      rounds[i] += sides[i]->rounds;
      tokens[i] += sides[i]->tokens;
    }
  }
  double rate(int side) const {
    return static_cast<double>(tokens[side]) / static_cast<double>(rounds[side]);
  }
  double change() const { return rate(1) - rate(0); }
};

// Resampled within each group; `level` is what lies outside.
HeadChange change_of(const std::vector<const std::vector<Pair>*>& groups, double level,
                     uint64_t seed) {
  HeadChange result;
  Sums sums;
  for (const auto* group : groups) {
    result.prompts += static_cast<int>(group->size());
    for (const Pair& pair : *group) sums.add(pair);
  }
  result.before = sums.rate(0);
  result.after = sums.rate(1);

  std::mt19937_64 random(seed);
  std::vector<double> changes;
  changes.reserve(kResamples);
  for (int i = 0; i < kResamples; ++i) {
    Sums sample;
    for (const auto* group : groups)
      for (size_t drawn = 0; drawn < group->size(); ++drawn)
        sample.add((*group)[random() % group->size()]);
    changes.push_back(sample.change());
  }
  std::ranges::sort(changes);
  const auto outside = static_cast<size_t>(std::floor(kResamples * level / 2));
  result.change = {changes[outside], changes[kResamples - 1 - outside]};
  return result;
}

std::string described(const HeadChange& change) {
  return fmt::format("from {:.3f} to {:.3f} tokens per round, the change in [{:.3f}, {:.3f}]",
                     change.before, change.after, change.change.low, change.change.high);
}

void decide(Promotion& result) {
  for (const HeadChange& category : result.categories) {
    if (category.change.high >= 0) continue;
    result.reason = fmt::format("the category {} falls {}",
                                category.category.empty() ? "without name" : category.category,
                                described(category));
    return;
  }
  if (result.all.prompts < kFewestPrompts) {
    result.reason =
        fmt::format("{} prompts are too few to tell a rise from chance, {} are needed, {}",
                    result.all.prompts, kFewestPrompts, described(result.all));
    return;
  }
  result.promote = result.all.change.low > 0;
  result.reason =
      fmt::format("over {} prompts it {} {}", result.all.prompts,
                  result.promote ? "rises" : "does not rise beyond chance,", described(result.all));
}

}  // namespace

Result<Promotion> compare_heads(std::span<const PromptRounds> before,
                                std::span<const PromptRounds> after, uint64_t seed) {
  const auto bad = [](const std::string& what) { return Error{ErrorCode::BadUsage, what}; };
  if (before.size() != after.size())
    return bad(fmt::format("heads are compared over the same prompts, not over {} and {}",
                           before.size(), after.size()));
  std::map<std::string, std::vector<Pair>> pairs;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].id != after[i].id || before[i].category != after[i].category)
      return bad(fmt::format("heads are compared over the same prompts; number {} is '{}' and '{}'",
                             i + 1, before[i].id, after[i].id));
    if (before[i].rounds > 0 && after[i].rounds > 0)
      pairs[before[i].category].push_back({&before[i], &after[i]});
  }
  if (pairs.empty()) return bad("heads are compared by rounds, and no prompt has some under both");

  Promotion result;
  std::vector<const std::vector<Pair>*> all;
  for (const auto& [category, group] : pairs) {
    result.categories.push_back(
        change_of({&group}, kLevel / static_cast<double>(pairs.size()), seed));
    result.categories.back().category = category;
    all.push_back(&group);
  }
  result.all = change_of(all, kLevel, seed);
  decide(result);
  return result;
}

}  // namespace paceline::measure
