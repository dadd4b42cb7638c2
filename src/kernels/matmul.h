// y = x * W^T, the projection in which decoding spends its time.
//
//   x (rows, n_in) f32     W (n_out, n_in) packed     y (rows, n_out) f32
//
// Row r of y comes from row r of x alone, bit for bit, whatever the number of rows and threads
// (docs/numerics.md, rules 1 and 4). Cost: the weights' bytes once, while rows are few.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/mat.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "kernels/packed.h"

namespace paceline {

// What a product takes its rows as.
enum class RowForm {
  Float,  // float32, rows of a group interleaved
  Int8,   // blocks of 32 (rule 4)
  Split,  // two bf16 parts a value (amx numerics)
};
RowForm row_form(WeightType type, Numerics numerics);

// Rows made ready for products. One preparation serves every product of the same rows whose weights
// take the same form. Memory is taken once.
class Activations {
 public:
  Activations() = default;
  // Room for max_rows rows of up to max_n_in inputs.
  static Result<Activations> make(int max_rows, int max_n_in);

  // Prepares x for products with weights of this type.
  void set(Mat<const float> x, WeightType type, const Kernels& kernels);
  // The same in pieces, where the form allows it: what it is to hold, whether it does, and columns
  // [first, last) of x, whole blocks of them, from any thread.
  bool begin(Mat<const float> x, WeightType type, const Kernels& kernels);
  void set_columns(Mat<const float> x, int first, int last, const KernelTable& table);

  int rows() const { return rows_; }
  int n_in() const { return n_in_; }
  RowForm form() const { return form_; }
  // Fills the activation fields of args.
  void fill(MatmulArgs& args) const;

 private:
  HugeBuffer memory_;
  size_t max_values_ = 0;
  const float* x_ = nullptr;  // float rows: interleaved copy, or the caller's own single row
  int rows_ = 0;
  int n_in_ = 0;
  RowForm form_ = RowForm::Float;

  float* interleaved() const;
  uint16_t* split() const { return reinterpret_cast<uint16_t*>(interleaved()); }
  int8_t* q() const;
  float* scale() const;
  float* scaled_sum() const;
  int32_t* sum() const;
};

// One product of a pass.
struct Product {
  PackedMatrix w;
  Mat<float> y;
  const float* bias = nullptr;  // n_out values, or none
  Store store = Store::Overwrite;
};

// What becomes of columns [first, last) of the outputs, blocks of kQuantBlock, once all products
// have them; the products have one width. On the thread that computed them, where all products read
// their inputs in one form. Refers to a function that outlives it.
class Then {
 public:
  Then() = default;
  template <class Function>
  explicit Then(const Function& function)
      : context_(&function), call_([](const void* context, int first, int last) {
          (*static_cast<const Function*>(context))(first, last);
        }) {}
  explicit operator bool() const { return call_ != nullptr; }
  void operator()(int first, int last) const { call_(context_, first, last); }

 private:
  const void* context_ = nullptr;
  void (*call_)(const void*, int, int) = nullptr;
};

// Runs products that share their activations as one piece of parallel work. Their weights all take
// the form in which the activations were prepared.
void matmul(const Activations& x, std::span<const Product> products, const Kernels& kernels,
            const Then& then = {});

// Prepares x and runs the products, whatever mixture of weights they have (kMaxProducts at most).
inline constexpr int kMaxProducts = 4;
void project(Mat<const float> x, std::initializer_list<Product> products, Activations& prepared,
             const Kernels& kernels, const Then& then = {});

}  // namespace paceline
