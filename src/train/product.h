// Products of training over rows of float32, on all threads.
//
//   forward    y (rows, n_out)   = x (rows, n_in) . W^T
//   backward   d_x (rows, n_in)  = d_y . W           d_W (n_out, n_in) += d_y^T . x
//
// All are one kernel, c(row, col) = sum over k of a(row, k) b(col, k), on operands packed for it:
// left ones by rows, right ones in panels of columns. Threads share out rows and columns of the
// result and never a sum, so bits do not depend on their number.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mat.h"
#include "base/threads.h"
#include "train/table.h"

namespace paceline::train {

// What training computes with. Passed to everything.
struct Tools {
  const TrainTable* table = nullptr;
  ThreadPool* pool = nullptr;
};

// A left operand. Refilled without taking memory again while it does not grow.
class Left {
 public:
  // Rows x (rows, n_sum).
  void set_rows(Mat<const float> x, const Tools& tools);
  // Columns of x (n_sum, rows): the transposed matrix.
  void set_columns(Mat<const float> x, const Tools& tools);
  // Room for rows that the caller packs itself (TrainTable::left_rows); zero where it does not.
  void make_rows(int rows, int n_sum, const Tools& tools);
  uint32_t* row(int r) { return units_.data() + r * row_; }

  int rows() const { return rows_; }
  int steps() const { return steps_; }
  const uint32_t* units() const { return units_.data(); }
  int64_t row_pitch() const { return row_; }
  int64_t step_pitch() const { return step_; }

 private:
  std::vector<uint32_t> units_;
  int rows_ = 0;
  int steps_ = 0;
  int64_t row_ = 0;
  int64_t step_ = 0;
};

// A right operand.
class Right {
 public:
  // Column c is row c of x (cols, n_sum): W in forward products.
  void set_rows(Mat<const float> x, const Tools& tools);
  // Column c is column c of x (n_sum, cols): W going back, x in products of weight gradients.
  void set_columns(Mat<const float> x, const Tools& tools);

  int cols() const { return cols_; }
  int steps() const { return steps_; }
  const uint32_t* units() const { return units_.data(); }

 private:
  std::vector<uint32_t> units_;
  int cols_ = 0;
  int steps_ = 0;

  void reserve(int cols, int n_sum, const Tools& tools);
};

// c (left.rows, right.cols) = or += left . right.
void multiply(const Left& left, const Right& right, Mat<float> c, bool add, const Tools& tools);
// The same into rows that stand `pitch` floats apart. Rows of a power of two share sets of the
// first-level cache, which a few floats between them avoid.
void multiply_apart(const Left& left, const Right& right, float* c, int64_t pitch,
                    const Tools& tools);

}  // namespace paceline::train
