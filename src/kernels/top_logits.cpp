#include "kernels/top_logits.h"

#include <algorithm>

namespace paceline {

void top_logits(std::span<const float> row, int n, std::vector<std::pair<TokenId, float>>& top) {
  constexpr size_t kStride = 64;  // looked at together: hardly any stretch holds one that counts
  top.clear();
  if (n <= 0) return;
  top.reserve(static_cast<size_t>(n) + 1);
  const auto take = [&](size_t i) {
    const float logit = row[i];
    const bool full = static_cast<int>(top.size()) == n;
    if (!(logit == logit) || (full && !(logit > top.back().second))) return;
    const auto place = std::find_if(top.begin(), top.end(),
                                    [&](const auto& entry) { return logit > entry.second; });
    top.insert(place, {static_cast<TokenId>(i), logit});
    if (full) top.pop_back();
  };
  for (size_t begin = 0; begin < row.size(); begin += kStride) {
    const size_t end = std::min(begin + kStride, row.size());
    if (static_cast<int>(top.size()) == n) {
      const float least = top.back().second;
      int above = 0;
      for (size_t i = begin; i < end; ++i) above += row[i] > least ? 1 : 0;
      if (above == 0) continue;
    }
    for (size_t i = begin; i < end; ++i) take(i);
  }
}

}  // namespace paceline
