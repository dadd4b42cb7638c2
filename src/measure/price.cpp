#include "measure/price.h"

#include <array>

#include "engine/passes.h"

namespace paceline::measure {

Result<Price> measure_price(const Engine& engine, int position, int pairs,
                            const std::function<void(double share)>& progress,
                            const std::function<bool()>& stop) {
  constexpr int kRows = Price::kMostRows;
  auto passes =
      Passes::make(engine.model(), engine.context(), engine.cache_type(), position, kRows);
  if (!passes) return passes.error();
  Price price;
  price.position = passes->position();
  const auto timed = [&](int rows, bool wide) {
    passes->use_wide(wide);
    return passes->seconds(rows);
  };

  std::array<std::vector<double>, kRows + 1> exact;
  std::array<std::vector<double>, kRows + 1> wide;
  for (int pair = -1; pair < pairs && !(stop && stop()); ++pair) {
    if (progress) progress(static_cast<double>(pair + 1) / (pairs + 1));
    for (int rows = 1; rows <= kRows; ++rows) {
      const bool wide_first = (pair + rows) % 2 == 0;  // neither arm always comes second
      const double first = timed(rows, wide_first);
      const double second = timed(rows, !wide_first);
      if (pair < 0) continue;  // the first time round warms up
      exact[rows].push_back(wide_first ? second : first);
      wide[rows].push_back(wide_first ? first : second);
    }
    if (pair >= 0) ++price.pairs;
  }
  if (price.pairs == 0) return Error{ErrorCode::Interrupted, "interrupted"};
  for (int rows = 1; rows <= kRows; ++rows) {
    std::vector<double> ratios;
    for (size_t i = 0; i < exact[rows].size(); ++i)
      ratios.push_back(exact[rows][i] / wide[rows][i]);
    price.widths.push_back({.rows = rows,
                            .ratio = median(ratios),
                            .interval = median_interval(ratios, static_cast<uint64_t>(rows)),
                            .exact_seconds = median(exact[rows]),
                            .wide_seconds = median(wide[rows])});
  }
  return price;
}

}  // namespace paceline::measure
