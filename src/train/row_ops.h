// Operations of training on rows, forward and back, on all threads. Rows are shared out, or columns
// where rows are summed; bits do not depend on how.
//
// A gradient is named d_ and its tensor; the way back takes what forward kept.
#pragma once

#include <span>
#include <vector>

#include "base/mat.h"
#include "train/product.h"

namespace paceline::train {

// Some columns of rows: cols columns of each of m's rows, from column `first` on.
struct Columns {
  Mat<float> m;
  int first = 0;
  int cols = 0;
};

// y = x / sqrt(mean(x^2) + eps) * weight; inverse (rows) keeps 1 / sqrt(...).
void rms_norm(Mat<const float> x, const float* weight, float eps, Columns y, float* inverse,
              const Tools& tools);
// d_x = or += the gradient, d_weight += it.
void rms_norm_back(Mat<const float> x, const float* weight, const float* inverse, Columns d_y,
                   bool add, Mat<float> d_x, float* d_weight, const Tools& tools);
// The gradient of the weight alone.
void rms_norm_back_weight(Mat<const float> x, const float* inverse, Columns d_y, float* d_weight,
                          const Tools& tools);

// y = silu(gate) * up (Shazeer 2020), silu(x) = x / (1 + e^-x).
void swiglu(Mat<const float> gate, Mat<const float> up, Mat<float> y, const Tools& tools);
void swiglu_back(Mat<const float> gate, Mat<const float> up, Mat<const float> d_y,
                 Mat<float> d_gate, Mat<float> d_up, const Tools& tools);

// x += bias, a row at a time; bias null: nothing.
void add_bias(const float* bias, Mat<float> x, const Tools& tools);
// d_bias += sum of the rows of d_x; d_bias null: nothing.
void add_bias_back(Mat<const float> d_x, float* d_bias, const Tools& tools);

// to += x.
void add(Mat<const float> x, Mat<float> to, const Tools& tools);

// Cosines and sines of positions 0 .. n - 1, (n, head_dim / 2).
struct Angles {
  std::vector<float> cos, sin;
  int half = 0;
};
Angles make_angles(std::span<const double> frequencies, int positions);
// Rotates the heads of each row by the angles of its position; back: by their negatives, which is
// the gradient.
void rope(Mat<float> x, int head_dim, std::span<const int> positions, const Angles& angles,
          bool back, const Tools& tools);

}  // namespace paceline::train
