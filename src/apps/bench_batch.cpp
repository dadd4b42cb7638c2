#include "apps/bench_batch.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/say.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

constexpr int kMostSequences = 256;

// Against one sequence alone; 0 where that was not measured.
double ratio_to_one(const measure::BatchResult& result, const measure::BatchSummary& size) {
  for (const auto& other : result.sizes) {
    if (other.sequences == 1 && other.tokens_per_second > 0)
      return size.tokens_per_second / other.tokens_per_second;
  }
  return 0;
}

}  // namespace

Result<std::vector<int>> parse_batch_sizes(std::string_view text) {
  std::vector<int> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const auto size = parse_integer(text.substr(begin, comma - begin), 1, kMostSequences);
    if (!size) return wants(fmt::format("1 to {}, separated by commas", kMostSequences), text);
    sizes.push_back(static_cast<int>(*size));
    begin = comma + 1;
  }
  return sizes;
}

Json batch_json(const measure::BatchResult& result) {
  Json sizes = Json::array();
  for (const auto& size : result.sizes) {
    const double ratio = ratio_to_one(result, size);
    sizes.push_back(
        Json{{"sequences", size.sequences},
             {"tokens", size.tokens},
             {"tokens_per_second", size.tokens_per_second},
             {"interval", size.interval ? Json::array({size.interval->low, size.interval->high})
                                        : Json(nullptr)},
             {"ratio", ratio > 0 ? Json(ratio) : Json(nullptr)}});
  }
  return Json{{"sizes", std::move(sizes)}, {"identical", result.identical}};
}

void print_batches(const measure::BatchResult& result) {
  say("\nsequences together   tokens/s  run again, 95 %    against one\n");
  for (const auto& size : result.sizes) {
    const double ratio = ratio_to_one(result, size);
    const std::string interval =
        size.interval ? fmt::format("[{:.1f}, {:.1f}]", size.interval->low, size.interval->high)
                      : "-";
    say("{:>18}{:>11.1f}  {:<17}  {}\n", size.sequences, size.tokens_per_second, interval,
        ratio > 0 ? fmt::format("{:.2f}x", ratio) : "");
  }
  say("each wrote what it writes alone: {}\n", result.identical ? "yes" : "no");
}

}  // namespace paceline::apps
