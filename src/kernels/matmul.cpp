#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/rows.h"

namespace paceline {
namespace {

// Rows of one group side by side, so that the inputs that meet one weight share a cache line; rows
// kept 4 KiB apart would fall into one set of the first-level cache.
void interleave(Mat<const float> x, float* out) {
  for (int base = 0; base < x.rows; base += kRowGroup) {
    const int in_group = std::min(kRowGroup, x.rows - base);
    for (int r = 0; r < in_group; ++r) {
      const float* row = x.row(base + r).data();
      float* to = out + static_cast<int64_t>(base) * x.cols + r;
      for (int k = 0; k < x.cols; ++k) to[static_cast<int64_t>(k) * in_group] = row[k];
    }
  }
}

MatmulArgs product_args(const Activations& x, const Product& product) {
  MatmulArgs args;
  x.fill(args);
  args.n_in = product.w.n_in;
  args.w = product.w.data;
  args.tile_bytes = tile_bytes(product.w.type, product.w.n_in);
  args.n_out = product.w.n_out;
  args.y = product.y.data;
  args.y_stride = product.y.cols;
  args.store = product.store;
  args.bias = product.bias;
  return args;
}

// The control of width-dispatched products knows portable numerics only.
Numerics product_numerics(const Kernels& kernels) {
  return kernels.wide ? Numerics::Portable : kernels.table->numerics;
}

}  // namespace

Result<Activations> Activations::make(int max_rows, int max_n_in) {
  Activations a;
  // One block more a row than needed for sizes that are no whole number of blocks.
  a.max_values_ = static_cast<size_t>(max_rows) * ((max_n_in + kQuantBlock - 1) / kQuantBlock + 1) *
                  kQuantBlock;
  // f32 copies, int8 blocks, and three values a block.
  auto memory = HugeBuffer::allocate(a.max_values_ * (4 + 1) + a.max_values_ / kQuantBlock * 3 * 4);
  if (!memory) return memory.error();
  a.memory_ = std::move(*memory);
  return a;
}

float* Activations::interleaved() const { return reinterpret_cast<float*>(memory_.data()); }
int8_t* Activations::q() const {
  return reinterpret_cast<int8_t*>(memory_.data() + max_values_ * 4);
}
float* Activations::scale() const {
  return reinterpret_cast<float*>(memory_.data() + max_values_ * 5);
}
float* Activations::scaled_sum() const { return scale() + max_values_ / kQuantBlock; }
int32_t* Activations::sum() const {
  return reinterpret_cast<int32_t*>(scaled_sum() + max_values_ / kQuantBlock);
}

RowForm row_form(WeightType type, Numerics numerics) {
  if (is_quantized(type)) return RowForm::Int8;
  const bool split = type == WeightType::BF16 && numerics == Numerics::Amx;
  return split ? RowForm::Split : RowForm::Float;
}

void Activations::set(Mat<const float> x, WeightType type, const Kernels& kernels) {
  const size_t whole_blocks = (x.cols + kQuantBlock - 1) / kQuantBlock;
  check(x.rows * whole_blocks * kQuantBlock <= max_values_, "activations fit their memory");
  rows_ = x.rows;
  n_in_ = x.cols;
  form_ = row_form(type, product_numerics(kernels));
  if (form_ == RowForm::Float) {
    x_ = x.data;
    if (x.rows == 1) return;
    interleave(x, interleaved());
    x_ = interleaved();
    return;
  }
  check(form_ != RowForm::Int8 || x.cols % kQuantBlock == 0,
        "quantised products take whole blocks of inputs");
  const int64_t elements = static_cast<int64_t>(x.rows) * x.cols;
  if (form_ == RowForm::Split) {
    hand_out(x.rows, 1, elements, kernels, [&](int64_t first, int64_t last) {
      kernels.table->split_rows(x.data, x.rows, x.cols, static_cast<int>(first),
                                static_cast<int>(last - first), split());
    });
    return;
  }
  const int64_t groups = (x.rows + kRowGroup - 1) / kRowGroup;
  const int64_t blocks = groups * (x.cols / kQuantBlock);
  hand_out(blocks, 4, elements, kernels, [&](int64_t first, int64_t last) {
    kernels.table->quantize_blocks(x.data, x.rows, x.cols, first, last, q(), scale(), scaled_sum(),
                                   sum());
  });
}

void Activations::fill(MatmulArgs& args) const {
  args.rows = rows_;
  switch (form_) {
    case RowForm::Float:
      args.x = x_;
      return;
    case RowForm::Split:
      args.x = split();
      return;
    case RowForm::Int8:
      args.x = q();
      args.x_scale = scale();
      args.x_scaled_sum = scaled_sum();
      args.x_sum = sum();
      return;
  }
}

void matmul(const Activations& x, std::span<const Product> products, const Kernels& kernels) {
  // Threads share bands of float weights, tiles of others.
  const int unit = x.form() == RowForm::Int8 ? 1 : kBandTiles;
  const auto units = [&](const PackedMatrix& w) { return (w.tiles() + unit - 1) / unit; };
  int64_t all_units = 0;
  for (const Product& p : products) {
    check(p.w.n_in == x.n_in(), "a product's weights are as wide as its inputs");
    check(row_form(p.w.type, product_numerics(kernels)) == x.form(),
          "activations are prepared for their weights");
    check(p.y.rows == x.rows() && p.y.cols >= p.w.n_out, "a product's outputs have room");
    all_units += units(p.w);
  }
  const auto& run = kernels.wide ? kernels.table->matmul_wide : kernels.table->matmul;
  kernels.pool->split(all_units, 1, [&](int64_t begin, int64_t end) {
    int64_t before = 0;  // units of the products passed so far
    for (const Product& p : products) {
      const int64_t first = std::max<int64_t>(begin - before, 0) * unit;
      const int64_t last = std::min<int64_t>((end - before) * unit, p.w.tiles());
      before += units(p.w);
      if (first >= last) continue;
      run[static_cast<int>(p.w.type)](product_args(x, p), static_cast<int>(first),
                                      static_cast<int>(last));
    }
  });
}

void project(Mat<const float> x, std::initializer_list<Product> products, Activations& prepared,
             const Kernels& kernels) {
  check(products.size() <= kMaxProducts, "few products share their inputs");
  for (const RowForm form : {RowForm::Float, RowForm::Split, RowForm::Int8}) {
    std::array<Product, kMaxProducts> chosen;
    size_t n = 0;
    for (const Product& p : products)
      if (row_form(p.w.type, product_numerics(kernels)) == form) chosen[n++] = p;
    if (n == 0) continue;
    prepared.set(x, chosen[0].w.type, kernels);
    matmul(prepared, std::span(chosen).first(n), kernels);
  }
}

}  // namespace paceline
