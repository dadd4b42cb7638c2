#include "kernels/rows.h"

#include "base/check.h"

namespace paceline {
namespace {

// Hands out the elements of a matrix of this shape.
template <class Work>
void each_element(const Mat<float>& m, const Kernels& kernels, const Work& work) {
  const int64_t n = static_cast<int64_t>(m.rows) * m.cols;
  hand_out(n, 64, n, kernels, work);
}

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
  hand_out(x.rows, 1, static_cast<int64_t>(x.rows) * x.cols, kernels, norm);
}

void silu_mul(Mat<float> gate, Mat<const float> up, const Kernels& kernels) {
  check(gate.rows == up.rows && gate.cols == up.cols, "gate and up have one shape");
  each_element(gate, kernels, [&](int64_t begin, int64_t end) {
    kernels.table->silu_mul(gate.data + begin, up.data + begin, end - begin);
  });
}

void gelu_mul(Mat<float> gate, Mat<const float> up, const Kernels& kernels) {
  check(gate.rows == up.rows && gate.cols == up.cols, "gate and up have one shape");
  each_element(gate, kernels, [&](int64_t begin, int64_t end) {
    kernels.table->gelu_mul(gate.data + begin, up.data + begin, end - begin);
  });
}

void soft_cap(Mat<float> x, float cap, const Kernels& kernels) {
  check(cap > 0, "a cap is above zero");
  each_element(x, kernels, [&](int64_t begin, int64_t end) {
    kernels.table->soft_cap(x.data + begin, end - begin, cap);
  });
}

void add(Mat<float> to, Mat<const float> x, const Kernels& kernels) {
  check(to.rows == x.rows && to.cols == x.cols, "what is added has one shape");
  each_element(to, kernels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to.data[i] = to.data[i] + x.data[i];
  });
}

}  // namespace paceline
