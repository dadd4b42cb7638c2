#include "measure/pass_watch.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/check.h"
#include "measure/statistics.h"

namespace paceline::measure {

Result<PassWatch> PassWatch::make(const Engine& engine) {
  constexpr int kPosition = 256;
  auto passes = Passes::make(engine.model(), engine.context(), engine.cache_type(), kPosition,
                             Watched::kRows);
  if (!passes) return passes.error();
  auto pool = engine.threads() > 1 ? std::make_unique<ThreadPool>(engine.threads()) : nullptr;
  return PassWatch(std::move(*passes), std::move(pool));
}

void PassWatch::look() {
  const double before = passes_.seconds(1);
  const double wide = passes_.seconds(Watched::kRows) + passes_.seconds(Watched::kRows);
  const double after = passes_.seconds(1);
  if (before + after > 0) ratios_.push_back(wide / (before + after));
  if (pool_ == nullptr) return;
  constexpr int kRuns = 200;
  const auto run = [&] { pool_->run(pool_->size(), [](int, int) {}); };
  for (int i = 0; i < kRuns / 4; ++i) run();  // wakes them up
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) run();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  round_trips_.push_back(spent.count() / kRuns);
}

std::optional<Watched> PassWatch::watched() const {
  if (ratios_.empty()) return std::nullopt;
  return summarize_looks(ratios_, round_trips_);
}

Watched summarize_looks(std::vector<double> ratios, const std::vector<double>& round_trips) {
  check(!ratios.empty(), "there was a look");
  std::sort(ratios.begin(), ratios.end());
  const size_t tenth = ratios.size() / 10;
  return {.looks = static_cast<int>(ratios.size()),
          .mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) /
                  static_cast<double>(ratios.size()),
          .low = ratios[tenth],
          .high = ratios[ratios.size() - 1 - tenth],
          .round_trip = round_trips.empty() ? std::nullopt : std::optional(median(round_trips))};
}

}  // namespace paceline::measure
