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

}  // namespace paceline
