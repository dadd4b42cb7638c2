#include "kernels/argmax.h"
#include "kernels/choose.h"
#include "kernels/softmax.h"

namespace paceline {

// All tables give the same bits, so it does not matter which one serves here.
int argmax(std::span<const float> row) {
  return kernel_tables().back()->argmax(row.data(), static_cast<int>(row.size()));
}

float log_sum_exp(std::span<const float> row) {
  return kernel_tables().back()->log_sum_exp(row.data(), static_cast<int>(row.size()));
}

float top_probability(std::span<const float> row, int top) {
  return 1.0f / kernel_tables().back()->exp_sum(row.data(), static_cast<int>(row.size()),
                                                {.top = row[top], .scale = 1.0f});
}

void top_probabilities(std::span<const float> row, std::span<const std::pair<TokenId, float>> top,
                       std::span<float> shares) {
  if (top.empty()) return;
  const float most = top_probability(row, top[0].first);
  for (size_t i = 0; i < top.size(); ++i) shares[i] = top[i].second - top[0].second;
  kernel_tables().back()->exp_all(shares.data(), static_cast<int>(top.size()), shares.data());
  for (float& share : shares.first(top.size())) share = share * most;
}

}  // namespace paceline
