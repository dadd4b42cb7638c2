// Parity of what draws a token from a row of logits.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/reference.h"
#include "kernels/sampling.h"
#include "measure/parity_rows.h"

namespace paceline::measure {
namespace {

// Inputs lie between -1 and 1: at this temperature some of the weights are small ones.
constexpr float kScale = 1.0f / 0.07f;

RowScale scale_of(std::span<const float> x) {
  return {*std::max_element(x.begin(), x.end()), kScale};
}

// An operation on a whole row that the kernel takes by itself.
RowOperation whole_row(const char* op, int n, size_t out_bytes, size_t element, double cost) {
  RowOperation operation{op, fmt::format("{}", n), "f32", n, out_bytes, element, cost};
  operation.in_blocks = false;
  return operation;
}

template <class T>
std::vector<std::byte> bytes_of_one(const T& value) {
  return bytes_of(std::span<const T>(&value, 1));
}

RowOperation draw_of(int n) {
  const auto args_of = [](std::span<const float> x, int which) {
    return DrawArgs{.row = scale_of(x), .key = noise_key(7, which)};
  };
  RowOperation op = whole_row("draw", n, sizeof(Drawn), 4, 50.0 * n);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                   std::byte* out) {
    Drawn best;
    kernels.table->draw(x.data, 0, n, args_of(x.row(0), which[0]), &best);
    std::memcpy(out, &best, sizeof(best));
  };
  op.reference = [=](std::span<const float> x, int which) {
    return bytes_of_one(reference::draw(x, args_of(x, which)));
  };
  return op;
}

RowOperation exp_sum_of(int n) {
  RowOperation op = whole_row("exp_sum", n, sizeof(float), 4, 10.0 * n);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    const float sum = kernels.table->exp_sum(x.data, n, scale_of(x.row(0)));
    std::memcpy(out, &sum, sizeof(sum));
  };
  op.reference = [](std::span<const float> x, int) {
    return bytes_of_one(reference::exp_sum(x, scale_of(x)));
  };
  return op;
}

RowOperation exp_all_of(int n) {
  RowOperation op = whole_row("exp_all", n, n * sizeof(float), 4, 10.0 * n);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    kernels.table->exp_all(x.data, n, reinterpret_cast<float*>(out));
  };
  op.reference = [](std::span<const float> x, int) {
    std::vector<float> y;
    for (const float v : x) y.push_back(reference::exp(v));
    return bytes_of(std::span<const float>(y));
  };
  return op;
}

RowOperation group_max_of(int n) {
  const int groups = (n + kDrawGroup - 1) / kDrawGroup;
  RowOperation op = whole_row("group_max", n, groups * sizeof(float), 4, n);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    kernels.table->group_max(x.data, n, reinterpret_cast<float*>(out));
  };
  op.reference = [=](std::span<const float> x, int) {
    std::vector<float> maxima;
    for (int first = 0; first < n; first += kDrawGroup) {
      const auto group = x.subspan(first, std::min(kDrawGroup, n - first));
      maxima.push_back(*std::max_element(group.begin(), group.end()));
    }
    return bytes_of(std::span<const float>(maxima));
  };
  return op;
}

// How many ids were gathered, then their sorting keys.
RowOperation gather_of(int n) {
  constexpr float kLeast = -9.0f;
  constexpr float kBelow = -1.0f;
  RowOperation op = whole_row("gather", n, (n + 1) * sizeof(uint64_t), 8, n);
  op.compute = [=](const Kernels& kernels, Mat<const float> x, std::span<const int>,
                   std::byte* out) {
    std::vector<uint64_t> keys(n + 1);
    keys[0] = kernels.table->gather(x.data, 0, n, scale_of(x.row(0)), kLeast, kBelow, &keys[1]);
    std::fill(keys.begin() + 1 + static_cast<ptrdiff_t>(keys[0]), keys.end(), 0);
    std::memcpy(out, keys.data(), keys.size() * sizeof(uint64_t));
  };
  op.reference = [=](std::span<const float> x, int) {
    const RowScale row = scale_of(x);
    std::vector<uint64_t> keys(1);
    for (int id = 0; id < n; ++id) {
      const float scaled = reference::scaled(x[id], row);
      if (scaled < kLeast || scaled >= kBelow) continue;
      const uint64_t magnitude = std::bit_cast<uint32_t>(scaled) & 0x7fffffffu;
      keys.push_back((magnitude << 32) | static_cast<uint32_t>(id));
    }
    keys[0] = keys.size() - 1;
    keys.resize(n + 1);
    return bytes_of(std::span<const uint64_t>(keys));
  };
  return op;
}

}  // namespace

void add_sampling(const ParityOptions&, std::vector<ParityPiece>& pieces) {
  for (const int n : kParityVocabularies) {
    pieces.push_back(piece_of(group_max_of(n)));
    pieces.push_back(piece_of(exp_sum_of(n)));
    pieces.push_back(piece_of(exp_all_of(n)));
    if (n > 100000) continue;  // the rest by plain loops would take long and say no more
    pieces.push_back(piece_of(draw_of(n)));
    if (n < 10000) pieces.push_back(piece_of(gather_of(n)));
  }
}

}  // namespace paceline::measure
