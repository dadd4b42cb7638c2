// Parity of what stands between the products: norms, activations, rotations, caches, vocabularies.
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/types.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "measure/parity_rows.h"

namespace paceline::measure {
namespace {

Mat<float> floats(std::byte* out, int rows, int cols) {
  return {reinterpret_cast<float*>(out), rows, cols};
}

RowOperation rms_norm_of(int dim) {
  constexpr float kEps = 1e-5f;
  const auto weight = std::make_shared<std::vector<float>>(ParityRandom(3).values(dim));
  RowOperation op{"rms_norm", fmt::format("{}", dim), "f32", dim, dim * sizeof(float)};
  op.cost = 10.0 * dim;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    rms_norm(x, weight->data(), kEps, floats(out, x.rows, dim), kernels);
  };
  op.reference = [=](std::span<const float> x, int) {
    return bytes_of(std::span<const float>(reference::rms_norm(x, *weight, kEps)));
  };
  return op;
}

struct Gating {
  const char* name;
  Gate kind;
  float (*reference)(float, float);
};
constexpr std::array kGates = {Gating{"silu_mul", Gate::Silu, reference::silu_mul},
                               Gating{"gelu_mul", Gate::Gelu, reference::gelu_mul}};

// A row is n gates and n values to be gated.
RowOperation gate_of(const Gating& gating, int n) {
  RowOperation op{gating.name, fmt::format("{}", n), "f32", 2 * n, n * sizeof(float)};
  op.cost = 100.0 * n;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    const Mat<float> gate = floats(out, x.rows, n);
    std::vector<float> up(static_cast<size_t>(x.rows) * n);
    for (int row = 0; row < x.rows; ++row) {
      std::memcpy(gate.row(row).data(), x.row(row).data(), n * sizeof(float));
      std::memcpy(&up[static_cast<size_t>(row) * n], x.row(row).data() + n, n * sizeof(float));
    }
    kernels.pool->split(n, 1, [&](int64_t first, int64_t last) {
      apply_gate(gating.kind, gate, Mat<const float>(up.data(), x.rows, n), static_cast<int>(first),
                 static_cast<int>(last), *kernels.table);
    });
  };
  op.reference = [=](std::span<const float> x, int) {
    std::vector<float> y(n);
    for (int i = 0; i < n; ++i) y[i] = gating.reference(x[i], x[n + i]);
    return bytes_of(std::span<const float>(y));
  };
  return op;
}

RowOperation soft_cap_of(int n) {
  constexpr float kCap = 0.7f;  // inputs reach 1
  RowOperation op{"soft_cap", fmt::format("{}", n), "f32", n, n * sizeof(float)};
  op.cost = 100.0 * n;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    std::memcpy(out, x.data, static_cast<size_t>(x.rows) * n * sizeof(float));
    soft_cap(floats(out, x.rows, n), kCap, kernels);
  };
  op.reference = [=](std::span<const float> x, int) {
    std::vector<float> y(n);
    for (int i = 0; i < n; ++i) y[i] = reference::soft_cap(x[i], kCap);
    return bytes_of(std::span<const float>(y));
  };
  return op;
}

RowOperation rope_of(int head_dim) {
  constexpr int kHeads = 3;
  const auto frequencies =
      std::make_shared<std::vector<double>>(rope_frequencies(10000.0, head_dim));
  struct Angles {
    std::vector<float> cos, sin;
  };
  const auto angles_of = [=](int which) {
    Angles angles{std::vector<float>(head_dim / 2), std::vector<float>(head_dim / 2)};
    rope_angles(*frequencies, which * 331, angles.cos.data(), angles.sin.data());
    return angles;
  };
  RowOperation op{"rope", fmt::format("{} x {}", kHeads, head_dim), "f32", kHeads * head_dim,
                  kHeads * head_dim * sizeof(float)};
  op.in_blocks = false;
  op.cost = 10.0 * op.inputs;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    const Angles angles = angles_of(which[0]);
    std::memcpy(out, x.data, x.cols * sizeof(float));
    kernels.table->rope(reinterpret_cast<float*>(out), kHeads, head_dim, angles.cos.data(),
                        angles.sin.data());
  };
  op.reference = [=](std::span<const float> x, int which) {
    const Angles angles = angles_of(which);
    std::vector<float> y(x.begin(), x.end());
    for (int head = 0; head < kHeads; ++head)
      reference::rope(std::span(y).subspan(static_cast<size_t>(head) * head_dim, head_dim),
                      angles.cos, angles.sin);
    return bytes_of(std::span<const float>(y));
  };
  return op;
}

// A row of activations in int8: for every block its 32 values, then scale, scaled sum and sum.
constexpr size_t kBlockBytes = kQuantBlock + 3 * 4;

RowOperation quantize_of(int n_in) {
  const int n_blocks = n_in / kQuantBlock;
  RowOperation op{"quantize", fmt::format("{}", n_in), "int8", n_in, n_blocks * kBlockBytes, 1};
  op.cost = 100.0 * n_in;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    auto prepared = *Activations::make(x.rows, n_in);
    prepared.set(x, WeightType::Q8_0, kernels);
    MatmulArgs args;
    prepared.fill(args);
    for (int row = 0; row < x.rows; ++row) {
      const int base = row / kRowGroup * kRowGroup;
      const int in_group = std::min(kRowGroup, x.rows - base);
      for (int b = 0; b < n_blocks; ++b, out += kBlockBytes) {
        const int64_t at = static_cast<int64_t>(base) * n_blocks +
                           static_cast<int64_t>(b) * in_group + (row - base);
        std::memcpy(out, static_cast<const int8_t*>(args.x) + at * kQuantBlock, kQuantBlock);
        std::memcpy(out + 32, args.x_scale + at, 4);
        std::memcpy(out + 36, args.x_scaled_sum + at, 4);
        std::memcpy(out + 40, args.x_sum + at, 4);
      }
    }
  };
  op.reference = [=](std::span<const float> x, int) {
    const auto row = reference::quantize_row(x);
    std::vector<std::byte> out(n_blocks * kBlockBytes);
    for (int b = 0; b < n_blocks; ++b) {
      std::byte* to = out.data() + b * kBlockBytes;
      const float scaled = row.d[b] * static_cast<float>(row.sum[b]);
      std::memcpy(to, row.q.data() + b * kQuantBlock, kQuantBlock);
      std::memcpy(to + 32, &row.d[b], 4);
      std::memcpy(to + 36, &scaled, 4);
      std::memcpy(to + 40, &row.sum[b], 4);
    }
    return out;
  };
  return op;
}

RowOperation argmax_of(int n) {
  RowOperation op{"argmax", fmt::format("{}", n), "f32", n, sizeof(int)};
  op.in_blocks = false;
  op.cost = n;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    const int best = kernels.table->argmax(x.data, n);
    std::memcpy(out, &best, sizeof(best));
  };
  op.reference = [=](std::span<const float> x, int) {
    const int best = reference::argmax(x);
    return bytes_of(std::span<const int>(&best, 1));
  };
  return op;
}

RowOperation log_sum_exp_of(int n) {
  RowOperation op{"log_sum_exp", fmt::format("{}", n), "f32", n, sizeof(float)};
  op.in_blocks = false;
  op.cost = 10.0 * n;
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    const float sum = kernels.table->log_sum_exp(x.data, n);
    std::memcpy(out, &sum, sizeof(sum));
  };
  op.reference = [=](std::span<const float> x, int) {
    const float sum = reference::log_sum_exp(x);
    return bytes_of(std::span<const float>(&sum, 1));
  };
  return op;
}

}  // namespace

void add_row_operations(const ParityOptions&, std::vector<ParityPiece>& pieces) {
  for (const int dim : kParityWidthsOfRows) {
    pieces.push_back(piece_of(rms_norm_of(dim)));
    if (dim % kQuantBlock == 0) pieces.push_back(piece_of(quantize_of(dim)));
  }
  for (const int n : kParityHidden) {
    for (const Gating& gate : kGates) pieces.push_back(piece_of(gate_of(gate, n)));
    pieces.push_back(piece_of(soft_cap_of(n)));
  }
  for (const int head_dim : kParityHeadDims) pieces.push_back(piece_of(rope_of(head_dim)));
  for (const int n : kParityVocabularies) {
    pieces.push_back(piece_of(argmax_of(n)));
    pieces.push_back(piece_of(log_sum_exp_of(n)));
  }
}

}  // namespace paceline::measure
