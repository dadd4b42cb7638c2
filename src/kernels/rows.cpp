#include "kernels/rows.h"

#include "base/check.h"

namespace paceline {
namespace {

// Below this many elements a hand-over to another thread costs more than it saves.
constexpr int64_t kWorthSplitting = 2048;

}  // namespace

void rms_norm(Mat<const float> x, const float* weight, float eps, Mat<float> y,
              const Kernels& kernels) {
  check(x.rows == y.rows && x.cols == y.cols, "a norm keeps its shape");
  const auto norm = [&](int64_t begin, int64_t end) {
    const auto first = static_cast<int>(begin);
    const auto n = static_cast<int>(end - begin);
    kernels.table->rms_norm(x.middle(first, n).data, weight, eps, n, x.cols,
                            y.middle(first, n).data);
  };
  if (static_cast<int64_t>(x.rows) * x.cols >= kWorthSplitting)
    kernels.pool->split(x.rows, 1, norm);
  else
    norm(0, x.rows);
}

void silu_mul(Mat<float> gate, Mat<const float> up, const Kernels& kernels) {
  check(gate.rows == up.rows && gate.cols == up.cols, "gate and up have one shape");
  const int64_t n = static_cast<int64_t>(gate.rows) * gate.cols;
  const auto multiply = [&](int64_t begin, int64_t end) {
    kernels.table->silu_mul(gate.data + begin, up.data + begin, end - begin);
  };
  if (n >= kWorthSplitting)
    kernels.pool->split(n, 64, multiply);
  else
    multiply(0, n);
}

}  // namespace paceline
