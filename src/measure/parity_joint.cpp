// Parity of products that share their rows: a piece of work is a part of each of them.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "kernels/matmul.h"
#include "measure/parity_rows.h"
#include "measure/parity_weights.h"

namespace paceline::measure {
namespace {

using Types = std::array<WeightType, 3>;

struct JointWeights {
  std::array<ParityWeights, 3> parts;
};

Mat<float> part_of(std::vector<float>& y, int rows, int first, int n) {
  return {y.data() + static_cast<size_t>(rows) * first, rows, n};
}

// A row by itself goes through three products of their own, a block through one call for all.
void multiply(const JointWeights& w, const Kernels& kernels, Mat<const float> x, std::byte* out) {
  std::array<Product, 3> products;
  int width = 0;
  for (const ParityWeights& part : w.parts) width += part.packed.n_out;
  std::vector<float> y(static_cast<size_t>(x.rows) * width);
  for (int i = 0, first = 0; i < 3; ++i) {
    const PackedMatrix& packed = w.parts[i].packed;
    products[i] = {packed, part_of(y, x.rows, first, packed.n_out)};
    first += packed.n_out;
  }
  auto prepared = *Activations::make(x.rows, x.cols);
  if (x.rows == 1) {
    for (const Product& product : products) project(x, {product}, prepared, kernels);
  } else {
    project(x, {products[0], products[1], products[2]}, prepared, kernels);
  }
  for (int row = 0; row < x.rows; ++row) {
    for (const Product& product : products) {
      const auto values = std::as_bytes(product.y.row(row));
      out = std::copy(values.begin(), values.end(), out);
    }
  }
}

void check_joint(ParityRun& run, const JointShape& shape, const Types& types, RowOperation op) {
  const auto w = std::make_shared<JointWeights>();
  for (int i = 0; i < 3; ++i) {
    auto part = draw_weights(types[i], shape.n_out[i], shape.n_in, 0,
                             static_cast<uint64_t>(i) + 100, *run.kernels(nullptr, 1).pool);
    if (!part) {
      run.not_run(fmt::format("{} {}: {}", op.op, op.shape, part.error().message));
      return;
    }
    w->parts[i] = std::move(*part);
  }
  op.compute = [w](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) { multiply(*w, kernels, x, out); };
  piece_of(std::move(op)).run(run);
}

}  // namespace

void add_joint_products(const ParityOptions&, std::vector<ParityPiece>& pieces) {
  using enum WeightType;
  constexpr std::array<Types, 5> kTypes = {Types{F32, F32, F32}, Types{BF16, BF16, BF16},
                                           Types{Q8_0, Q8_0, Q8_0}, Types{Q4_1, Q4_1, Q4_1},
                                           Types{Q4_0, BF16, Q8_0}};
  for (const JointShape& shape : kParityJoint) {
    for (const Types& types : kTypes) {
      RowOperation op;
      op.op = "joint products";
      op.shape =
          fmt::format("{} -> {}+{}+{}", shape.n_in, shape.n_out[0], shape.n_out[1], shape.n_out[2]);
      op.type = to_string(types[0]);
      if (types[0] != types[1])
        op.type += fmt::format(", {}, {}", to_string(types[1]), to_string(types[2]));
      op.inputs = shape.n_in;
      op.out_bytes = sizeof(float) * (shape.n_out[0] + shape.n_out[1] + shape.n_out[2]);
      op.cost = 1.0 * shape.n_in * (shape.n_out[0] + shape.n_out[1] + shape.n_out[2]);
      ParityPiece piece = piece_of(op);
      piece.run = [=](ParityRun& run) { check_joint(run, shape, types, op); };
      pieces.push_back(std::move(piece));
    }
  }
}

}  // namespace paceline::measure
