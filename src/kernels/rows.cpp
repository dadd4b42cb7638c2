#include "kernels/rows.h"

#include "base/check.h"

namespace paceline {
namespace {

// Hands out the elements of a matrix of this shape by columns, as products do with theirs:
// work(first element, elements).
template <class Work>
void each_element(const Mat<float>& m, const Kernels& kernels, const Work& work) {
  const int64_t n = static_cast<int64_t>(m.rows) * m.cols;
  hand_out(m.cols, kTileOutputs, n, kernels, [&](int64_t begin, int64_t end) {
    for (int row = 0; row < m.rows; ++row)
      work(static_cast<int64_t>(row) * m.cols + begin, end - begin);
  });
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

void apply_gate(Gate kind, Mat<float> gate, Mat<const float> up, int first, int last,
                const KernelTable& table) {
  check(gate.rows == up.rows && gate.cols == up.cols, "gate and up have one shape");
  const auto apply = kind == Gate::Silu ? table.silu_mul : table.gelu_mul;
  for (int row = 0; row < gate.rows; ++row)
    apply(gate.row(row).data() + first, up.row(row).data() + first, last - first);
}

void soft_cap(Mat<float> x, float cap, const Kernels& kernels) {
  check(cap > 0, "a cap is above zero");
  each_element(x, kernels,
               [&](int64_t at, int64_t n) { kernels.table->soft_cap(x.data + at, n, cap); });
}

void add(Mat<float> to, Mat<const float> x, const Kernels& kernels) {
  check(to.rows == x.rows && to.cols == x.cols, "what is added has one shape");
  each_element(to, kernels, [&](int64_t at, int64_t n) {
    for (int64_t i = at; i < at + n; ++i) to.data[i] = to.data[i] + x.data[i];
  });
}

}  // namespace paceline
