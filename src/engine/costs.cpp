#include "engine/costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/passes.h"
#include "spec/lookup.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

// The widths that are timed for the policy; r is close to straight between them.
constexpr int kWidths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One draft of the lookup, the text included that it reads between rounds.
double draft_seconds() {
  constexpr int kTokens = 2048;
  LookupDrafter drafter;
  drafter.begin({}, kTokens);
  std::vector<Draft> drafts(1);
  const auto start = Clock::now();
  for (int i = 0; i < kTokens; ++i) {
    const TokenId token = i * i % 97;
    drafter.observe({&token, 1}, {});
    drafter.draft(drafts);
  }
  return seconds_since(start) / kTokens;
}

// Straight lines between measured widths, the last one prolonged. A wider pass is not cheaper:
// where it seems so it is noise.
CostModel interpolate(const PassTimes& times) {
  const std::vector<int>& widths = times.widths;
  std::vector<double> seconds;
  for (const auto& values : times.seconds) seconds.push_back(std::max(1e-9, median(values)));
  CostModel costs = worst_costs();
  for (int m = 2; m <= CostModel::kMaxRows && widths.size() > 1; ++m) {
    size_t right = 1;
    while (right + 1 < widths.size() && widths[right] < m) ++right;
    const double slope =
        (seconds[right] - seconds[right - 1]) / (widths[right] - widths[right - 1]);
    const double at = seconds[right - 1] + slope * (m - widths[right - 1]);
    costs.verify[m] = std::max(costs.verify[m - 1], at / seconds[0]);
  }
  costs.draft = draft_seconds() / seconds[0];
  return costs;
}

}  // namespace

CostModel worst_costs() {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m) costs.verify[m] = m;
  return costs;
}

Result<PassTimes> time_passes(const Model& model, int context, CacheType cache,
                              const PassSweeps& sweeps) {
  PassTimes times;
  for (const int width : sweeps.widths) {
    if (width < context) times.widths.push_back(width);
  }
  if (times.widths.empty()) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  }
  auto passes = Passes::make(model, context, cache, sweeps.position, times.widths.back(),
                             sweeps.prefill_seconds);
  if (!passes) return passes.error();
  times.position = passes->position();

  times.seconds.resize(times.widths.size());
  const auto start = Clock::now();
  for (int sweep = 0; sweep <= sweeps.most; ++sweep) {
    if (sweep > sweeps.least && seconds_since(start) > sweeps.seconds) break;
    for (size_t turn = 0; turn < times.widths.size(); ++turn) {
      if (sweeps.stop && sweeps.stop()) {
        if (sweep > 1) return times;
        return Error{ErrorCode::Interrupted, "interrupted"};
      }
      const size_t i = sweep % 2 == 0 ? turn : times.widths.size() - 1 - turn;
      const double seconds = passes->seconds(times.widths[i]);
      if (sweep > 0) times.seconds[i].push_back(seconds);  // the first sweep warms up
    }
  }
  return times;
}

Result<CostModel> measure_costs(const Model& model, int context, CacheType cache) {
  const auto times = time_passes(model, context, cache, {.widths = kWidths});
  if (!times) return times.error();
  return interpolate(*times);
}

}  // namespace paceline
