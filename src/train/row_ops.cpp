#include "train/row_ops.h"

#include "base/check.h"
#include "kernels/rope.h"

namespace paceline::train {
namespace {

constexpr int kRowGrain = 8;
constexpr int kColumnGrain = 64;

// body(first row, rows)
template <class Body>
void each_rows(int rows, const Tools& tools, Body body) {
  tools.pool->split(rows, kRowGrain, [&](int64_t begin, int64_t end) {
    body(static_cast<int>(begin), static_cast<int>(end - begin));
  });
}
template <class Body>
void each_columns(int cols, const Tools& tools, Body body) {
  tools.pool->split(cols, kColumnGrain, [&](int64_t begin, int64_t end) {
    body(static_cast<int>(begin), static_cast<int>(end));
  });
}

}  // namespace

void rms_norm(Mat<const float> x, const float* weight, float eps, Columns y, float* inverse,
              const Tools& tools) {
  check(y.cols == x.cols && y.m.rows == x.rows, "a norm keeps its rows' shape");
  each_rows(x.rows, tools, [&](int first, int rows) {
    tools.table->rms_norm(x.row(first).data(), weight, eps, rows, x.cols, x.cols, y.m.cols,
                          y.m.row(first).data() + y.first, inverse + first);
  });
}

void rms_norm_back(Mat<const float> x, const float* weight, const float* inverse, Columns d_y,
                   bool add, Mat<float> d_x, float* d_weight, const Tools& tools) {
  check(d_y.cols == x.cols && d_y.m.rows == x.rows, "a norm keeps its rows' shape");
  each_rows(x.rows, tools, [&](int first, int rows) {
    tools.table->rms_norm_back(x.row(first).data(), weight, inverse + first,
                               d_y.m.row(first).data() + d_y.first, rows, x.cols, x.cols,
                               d_y.m.cols, add, d_x.row(first).data());
  });
  rms_norm_back_weight(x, inverse, d_y, d_weight, tools);
}

void rms_norm_back_weight(Mat<const float> x, const float* inverse, Columns d_y, float* d_weight,
                          const Tools& tools) {
  each_columns(x.cols, tools, [&](int first, int last) {
    tools.table->rms_norm_back_weight(x.data, inverse, d_y.m.data + d_y.first, x.rows, x.cols,
                                      d_y.m.cols, first, last, d_weight);
  });
}

void swiglu(Mat<const float> gate, Mat<const float> up, Mat<float> y, const Tools& tools) {
  each_rows(gate.rows, tools, [&](int first, int rows) {
    tools.table->swiglu(gate.row(first).data(), up.row(first).data(),
                        static_cast<int64_t>(rows) * gate.cols, y.row(first).data());
  });
}

void swiglu_back(Mat<const float> gate, Mat<const float> up, Mat<const float> d_y,
                 Mat<float> d_gate, Mat<float> d_up, const Tools& tools) {
  each_rows(gate.rows, tools, [&](int first, int rows) {
    tools.table->swiglu_back(gate.row(first).data(), up.row(first).data(), d_y.row(first).data(),
                             static_cast<int64_t>(rows) * gate.cols, d_gate.row(first).data(),
                             d_up.row(first).data());
  });
}

void add_bias(const float* bias, Mat<float> x, const Tools& tools) {
  if (bias == nullptr) return;
  each_rows(x.rows, tools, [&](int first, int rows) {
    for (int row = first; row < first + rows; ++row)
      tools.table->add(bias, x.cols, x.row(row).data());
  });
}

void add_bias_back(Mat<const float> d_x, float* d_bias, const Tools& tools) {
  if (d_bias == nullptr) return;
  each_columns(d_x.cols, tools, [&](int first, int last) {
    tools.table->column_sums(d_x.data, d_x.rows, d_x.cols, first, last, d_bias);
  });
}

void add(Mat<const float> x, Mat<float> to, const Tools& tools) {
  each_rows(x.rows, tools, [&](int first, int rows) {
    tools.table->add(x.row(first).data(), static_cast<int64_t>(rows) * x.cols,
                     to.row(first).data());
  });
}

Angles make_angles(std::span<const double> frequencies, int positions) {
  Angles angles;
  angles.half = static_cast<int>(frequencies.size());
  angles.cos.resize(static_cast<size_t>(positions) * angles.half);
  angles.sin.resize(angles.cos.size());
  for (int p = 0; p < positions; ++p)
    rope_angles(frequencies, p, angles.cos.data() + static_cast<size_t>(p) * angles.half,
                angles.sin.data() + static_cast<size_t>(p) * angles.half);
  return angles;
}

void rope(Mat<float> x, int head_dim, std::span<const int> positions, const Angles& angles,
          bool back, const Tools& tools) {
  check(std::ssize(positions) == x.rows && head_dim == 2 * angles.half, "a position for each row");
  each_rows(x.rows, tools, [&](int first, int rows) {
    for (int row = first; row < first + rows; ++row) {
      const size_t at = static_cast<size_t>(positions[row]) * angles.half;
      tools.table->rope(x.row(row).data(), x.cols / head_dim, head_dim, angles.cos.data() + at,
                        angles.sin.data() + at, back);
    }
  });
}

}  // namespace paceline::train
