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

bool Activations::begin(Mat<const float> x, WeightType type, const Kernels& kernels) {
  const size_t whole_blocks = (x.cols + kQuantBlock - 1) / kQuantBlock;
  check(x.rows * whole_blocks * kQuantBlock <= max_values_, "activations fit their memory");
  rows_ = x.rows;
  n_in_ = x.cols;
  form_ = row_form(type, product_numerics(kernels));
  check(form_ != RowForm::Int8 || x.cols % kQuantBlock == 0,
        "quantised products take whole blocks of inputs");
  return form_ == RowForm::Int8;
}

void Activations::set_columns(Mat<const float> x, int first, int last, const KernelTable& table) {
  const int64_t blocks = n_in_ / kQuantBlock;
  const int64_t groups = (rows_ + kRowGroup - 1) / kRowGroup;
  for (int64_t group = 0; group < groups; ++group)
    table.quantize_blocks(x.data, x.rows, x.cols, group * blocks + first / kQuantBlock,
                          group * blocks + last / kQuantBlock, q(), scale(), scaled_sum(), sum());
}

void Activations::set(Mat<const float> x, WeightType type, const Kernels& kernels) {
  const int64_t elements = static_cast<int64_t>(x.rows) * x.cols;
  if (begin(x, type, kernels)) {
    hand_out(x.cols, kQuantBlock, elements, kernels, [&](int64_t first, int64_t last) {
      set_columns(x, static_cast<int>(first), static_cast<int>(last), *kernels.table);
    });
    return;
  }
  if (form_ == RowForm::Float) {
    x_ = x.data;
    if (x.rows == 1) return;
    interleave(x, interleaved());
    x_ = interleaved();
    return;
  }
  hand_out(x.rows, 1, elements, kernels, [&](int64_t first, int64_t last) {
    kernels.table->split_rows(x.data, x.rows, x.cols, static_cast<int>(first),
                              static_cast<int>(last - first), split());
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

void matmul(const Activations& x, std::span<const Product> products, const Kernels& kernels,
            const Then& then) {
  // Threads share bands of float weights, tiles of others, or whole blocks of outputs.
  const int unit = x.form() != RowForm::Int8 ? kBandTiles : then ? kQuantBlock / kTileOutputs : 1;
  static_assert(kBandTiles * kTileOutputs % kQuantBlock == 0);
  int64_t all_tiles = 0;
  for (const Product& p : products) {
    check(p.w.n_in == x.n_in(), "a product's weights are as wide as its inputs");
    check(row_form(p.w.type, product_numerics(kernels)) == x.form(),
          "activations are prepared for their weights");
    check(p.y.rows == x.rows() && p.y.cols >= p.w.n_out, "a product's outputs have room");
    check(!then || p.w.n_out == products[0].w.n_out, "what comes of outputs needs all of them");
    all_tiles += p.w.tiles();
  }
  const auto& run = kernels.wide ? kernels.table->matmul_wide : kernels.table->matmul;
  // A piece is the same share of every product: outputs that meet later, as those of a gate and
  // what it lets through, are one thread's. What is left over falls to later pieces, and of every
  // second product to earlier ones, where they needn't be the same to the unit.
  const int pieces = kernels.pool->pieces(all_tiles);
  kernels.pool->run(pieces, [&](int /*thread*/, int piece) {
    int64_t left_over = 0;
    for (const Product& p : products) {
      const int64_t units = (p.w.tiles() + unit - 1) / unit;
      const int64_t first = (units * piece + left_over) / pieces * unit;
      const int64_t last =
          std::min<int64_t>((units * (piece + 1) + left_over) / pieces * unit, p.w.tiles());
      if (!then) left_over = pieces - 1 - left_over;
      if (first >= last) continue;
      run[static_cast<int>(p.w.type)](product_args(x, p), static_cast<int>(first),
                                      static_cast<int>(last));
      if (then && &p == &products.back())
        then(static_cast<int>(first) * kTileOutputs,
             std::min(static_cast<int>(last) * kTileOutputs, p.w.n_out));
    }
  });
}

void project(Mat<const float> x, std::initializer_list<Product> products, Activations& prepared,
             const Kernels& kernels, const Then& then) {
  check(products.size() <= kMaxProducts, "few products share their inputs");
  bool at_once = false;
  for (const RowForm form : {RowForm::Float, RowForm::Split, RowForm::Int8}) {
    std::array<Product, kMaxProducts> chosen;
    size_t n = 0;
    for (const Product& p : products)
      if (row_form(p.w.type, product_numerics(kernels)) == form) chosen[n++] = p;
    if (n == 0) continue;
    at_once = n == products.size();
    prepared.set(x, chosen[0].w.type, kernels);
    matmul(prepared, std::span(chosen).first(n), kernels, at_once ? then : Then());
  }
  if (!then || at_once) return;
  const int n_out = products.begin()->w.n_out;
  hand_out(
      n_out, kQuantBlock, static_cast<int64_t>(x.rows) * n_out, kernels,
      [&](int64_t first, int64_t last) { then(static_cast<int>(first), static_cast<int>(last)); });
}

}  // namespace paceline
