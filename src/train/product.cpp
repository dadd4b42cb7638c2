#include "train/product.h"

#include <algorithm>

#include "base/check.h"

namespace paceline::train {
namespace {

// Rows and columns of the result that one piece of work computes: its left part stays in the
// second-level cache.
constexpr int kPieceRows = 384;
constexpr int kPieceCols = 256;

// Rows of operands stand so many units beyond a multiple of this many bytes apart, or those of a
// tile would share sets of the first-level cache.
constexpr int64_t kPadUnits = 16;

int steps_for(int n_sum, const Tools& tools) {
  return (n_sum + tools.table->per_unit - 1) / tools.table->per_unit;
}

void multiply_into(const Left& left, const Right& right, float* c, int64_t c_row, bool add,
                   const Tools& tools) {
  check(left.steps() == right.steps(), "operands of a product have equally long sums");
  const int all_rows = left.rows();
  const int all_cols = right.cols();
  if (all_rows == 0 || all_cols == 0) return;
  // Pieces of whole tiles, as even as that allows.
  const int panel = tools.table->panel;
  const int row_pieces = (all_rows + kPieceRows - 1) / kPieceRows;
  const int rows = ((all_rows + row_pieces - 1) / row_pieces + 11) / 12 * 12;
  const int col_pieces = (all_cols + kPieceCols - 1) / kPieceCols;
  const int cols = ((all_cols + col_pieces - 1) / col_pieces + panel - 1) / panel * panel;
  const int64_t b_panel = static_cast<int64_t>(right.steps()) * panel;
  tools.pool->run(row_pieces * col_pieces, [&](int, int piece) {
    const int row = piece % row_pieces * rows;
    const int col = piece / row_pieces * cols;
    if (row >= all_rows || col >= all_cols) return;
    tools.table->product({.a = left.units() + row * left.row_pitch(),
                          .a_row = left.row_pitch(),
                          .a_step = left.step_pitch(),
                          .b = right.units() + col / panel * b_panel,
                          .b_panel = b_panel,
                          .steps = left.steps(),
                          .c = c + row * c_row + col,
                          .c_row = c_row,
                          .rows = std::min(rows, all_rows - row),
                          .cols = std::min(cols, all_cols - col),
                          .add = add});
  });
}

}  // namespace

void Left::make_rows(int rows, int n_sum, const Tools& tools) {
  rows_ = rows;
  steps_ = steps_for(n_sum, tools);
  row_ = (steps_ + kPadUnits - 1) / kPadUnits * kPadUnits + kPadUnits;
  step_ = 1;
  units_.resize(std::max(units_.size(), static_cast<size_t>(rows_ * row_)));
}

void Left::set_rows(Mat<const float> x, const Tools& tools) {
  make_rows(x.rows, x.cols, tools);
  tools.pool->split(x.rows, 16, [&](int64_t begin, int64_t end) {
    tools.table->left_rows(x.row(static_cast<int>(begin)).data(), x.cols,
                           static_cast<int>(end - begin), x.cols, 1.0f,
                           row(static_cast<int>(begin)), row_);
  });
}

void Left::set_columns(Mat<const float> x, const Tools& tools) {
  rows_ = x.cols;
  steps_ = steps_for(x.rows, tools);
  row_ = 1;
  step_ = x.cols;
  units_.resize(std::max(units_.size(), static_cast<size_t>(steps_ * step_)));
  const int per_unit = tools.table->per_unit;
  tools.pool->split(steps_, 16, [&](int64_t begin, int64_t end) {
    const int first = static_cast<int>(begin) * per_unit;
    const int last = std::min(static_cast<int>(end) * per_unit, x.rows);
    tools.table->left_columns(x.row(first).data(), x.cols, last - first, x.cols,
                              units_.data() + begin * step_, step_);
  });
}

void Right::reserve(int cols, int n_sum, const Tools& tools) {
  cols_ = cols;
  steps_ = steps_for(n_sum, tools);
  const int panel = tools.table->panel;
  const int64_t panels = (cols + panel - 1) / panel;
  units_.resize(std::max(units_.size(), static_cast<size_t>(panels * panel * steps_)));
}

void Right::set_rows(Mat<const float> x, const Tools& tools) {
  reserve(x.rows, x.cols, tools);
  const int panel = tools.table->panel;
  tools.pool->split((x.rows + panel - 1) / panel, 1, [&](int64_t begin, int64_t end) {
    tools.table->right_rows(x.data, x.cols, x.rows, x.cols, static_cast<int>(begin),
                            static_cast<int>(end), units_.data());
  });
}

void Right::set_columns(Mat<const float> x, const Tools& tools) {
  reserve(x.cols, x.rows, tools);
  const int panel = tools.table->panel;
  tools.pool->split((x.cols + panel - 1) / panel, 1, [&](int64_t begin, int64_t end) {
    tools.table->right_columns(x.data, x.cols, x.cols, x.rows, static_cast<int>(begin),
                               static_cast<int>(end), units_.data());
  });
}

void multiply(const Left& left, const Right& right, Mat<float> c, bool add, const Tools& tools) {
  check(c.rows == left.rows() && c.cols == right.cols(), "the result has the operands' shape");
  multiply_into(left, right, c.data, c.cols, add, tools);
}

void multiply_apart(const Left& left, const Right& right, float* c, int64_t pitch,
                    const Tools& tools) {
  check(pitch >= right.cols(), "rows do not overlap");
  multiply_into(left, right, c, pitch, false, tools);
}

}  // namespace paceline::train
