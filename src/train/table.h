// The kernels of training for one instruction set, as plain functions over pointers.
//
// Shapes are checked by the front files (product.h, row_ops.h, attention.h, loss.h). Masters,
// activations and gradients are float32. Products are float32 too, or, where the machine has them,
// of pairs of bf16 summed in float32: training may be approximate, drafting never comes here. All
// float32 tables give the same bits. No header of the standard library with code in it is included
// here: kernel files must not instantiate any.
#pragma once

#include <cstdint>

namespace paceline::train {

// Operands of products consist of 32-bit units: one float32, or two consecutive bf16 along the sum.
//
//   c (rows, cols) = or += sum over steps of a(row, step) . b(col, step)
//
// Per element one chain of multiply-adds over ascending steps, whatever the tiling.
struct ProductArgs {
  const uint32_t* a;
  int64_t a_row;      // units from one row to the next, and
  int64_t a_step;     // from one step to the next; one of the two is 1
  const uint32_t* b;  // panels of TrainTable::panel columns: [panel][step][column], zeros behind
  int64_t b_panel;    // units from one panel to the next
  int steps;
  float* c;
  int64_t c_row;
  int rows;
  int cols;
  bool add;  // +=
};

// One row of the loss; see loss.h.
struct LossRowArgs {
  const float* logits;
  const float* soft;  // the trunk's probabilities of the same words, or null
  int hard;           // index of the token that followed, or -1
  float soft_weight;  // of the two terms
  float hard_weight;
  float scale;  // of the gradient
  int n;
  uint32_t* d_units;  // gradient of the logits times scale, as a row of the left operand
};
struct LossRow {
  float loss;  // unscaled
  int best;    // index of the largest logit
};

struct AdamArgs {
  float rate;   // of this step
  float decay;  // weight decay, times the rate already
  float beta1, beta2;
  float correct1, correct2;  // 1 / (1 - beta^step)
  float eps;
  float gradient_scale;  // clipping
};

struct TrainTable {
  const char* name;  // "avx512-bf16"
  int per_unit;      // elements in a unit: 1 or 2
  int panel;         // columns side by side in a panel of the right operand

  void (*product)(const ProductArgs&);
  // Left operand of rows x (rows, n): units (n + per_unit - 1) / per_unit a row, rows `pitch` units
  // apart.
  void (*left_rows)(const float* x, int64_t x_row, int rows, int n, float scale, uint32_t* units,
                    int64_t pitch);
  // Left operand of columns: element (row, k) is x[k][row]; [step][row], steps `pitch` apart.
  void (*left_columns)(const float* x, int64_t x_row, int n_sum, int rows, uint32_t* units,
                       int64_t pitch);
  // Panels [first, last) of the right operand: column c is x[c][0 .. n_sum).
  void (*right_rows)(const float* x, int64_t x_row, int cols, int n_sum, int first, int last,
                     uint32_t* units);
  // The same where column c is x[0 .. n_sum)[c].
  void (*right_columns)(const float* x, int64_t x_row, int cols, int n_sum, int first, int last,
                        uint32_t* units);

  // y = x * inverse * weight with inverse = 1 / sqrt(mean(x^2) + eps), kept a row.
  void (*rms_norm)(const float* x, const float* weight, float eps, int rows, int dim, int64_t x_row,
                   int64_t y_row, float* y, float* inverse);
  // d_x += (or =) the gradient of the above.
  void (*rms_norm_back)(const float* x, const float* weight, const float* inverse, const float* d_y,
                        int rows, int dim, int64_t x_row, int64_t y_row, bool add, float* d_x);
  // d_weight[first, last) += sum over rows of d_y * x * inverse, rows ascending.
  void (*rms_norm_back_weight)(const float* x, const float* inverse, const float* d_y, int rows,
                               int64_t x_row, int64_t y_row, int first, int last, float* d_weight);
  // d_bias[first, last) += sum over rows of d_y, rows ascending.
  void (*column_sums)(const float* d_y, int rows, int64_t y_row, int first, int last, float* sums);

  void (*swiglu)(const float* gate, const float* up, int64_t n, float* y);
  void (*swiglu_back)(const float* gate, const float* up, const float* d_y, int64_t n,
                      float* d_gate, float* d_up);
  // Rotates halves by the angles; back: by the same angles the other way.
  void (*rope)(float* x, int n_heads, int head_dim, const float* cos, const float* sin, bool back);

  void (*add)(const float* x, int64_t n, float* to);
  void (*round_bf16)(const float* x, int64_t n, float* y);
  float (*dot)(const float* x, const float* y, int n);
  // y += a * x
  void (*add_scaled)(const float* x, float a, int n, float* y);
  // x = e^(x - most) with the row's largest value; returns the sum; *most is set. n may be 0, then
  // *most stays what it was. *most on entry: a value that takes part in the maximum.
  float (*exp_row)(float* x, int n, float* most);
  // p = e^(s - log_sum), in place.
  void (*exp_minus)(float* s, int n, float log_sum);
  void (*scale)(float* x, int n, float by);
  // s = p * (d_p - mean) * scale
  void (*softmax_back)(const float* p, const float* d_p, int n, float mean, float scale, float* s);

  // Softmax in place.
  void (*softmax)(float* x, int n);
  LossRow (*loss_row)(const LossRowArgs&);

  double (*sum_squares)(const float* x, int64_t n);
  void (*adam)(const AdamArgs& args, const float* gradient, int64_t n, float* master, float* m,
               float* v);
};

}  // namespace paceline::train
