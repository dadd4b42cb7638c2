#include "measure/pass_watch.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace paceline::measure {

Result<PassWatch> PassWatch::make(const Engine& engine) {
  constexpr int kPosition = 256;
  auto passes = Passes::make(engine.model(), engine.context(), engine.cache_type(), kPosition,
                             Watched::kRows);
  if (!passes) return passes.error();
  return PassWatch(std::move(*passes));
}

void PassWatch::look() {
  const double before = passes_.seconds(1);
  const double wide = passes_.seconds(Watched::kRows) + passes_.seconds(Watched::kRows);
  const double after = passes_.seconds(1);
  if (before + after > 0) ratios_.push_back(wide / (before + after));
}

std::optional<Watched> PassWatch::watched() const {
  if (ratios_.empty()) return std::nullopt;
  return summarize_looks(ratios_);
}

Watched summarize_looks(std::vector<double> ratios) {
  check(!ratios.empty(), "there was a look");
  std::sort(ratios.begin(), ratios.end());
  const size_t tenth = ratios.size() / 10;
  return {.looks = static_cast<int>(ratios.size()),
          .mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) /
                  static_cast<double>(ratios.size()),
          .low = ratios[tenth],
          .high = ratios[ratios.size() - 1 - tenth]};
}

}  // namespace paceline::measure
