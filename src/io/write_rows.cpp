#include "io/write_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "io/shown.h"

namespace paceline {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;

Result<void> check_size(const TensorSpec& tensor) {
  const auto bad = [&](const char* what) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("cannot write tensor {}: {}", quoted_name(tensor.name), what)};
  };
  int64_t bytes = block_bytes(tensor.type);
  for (const int64_t length : tensor.shape) {
    if (length < 0) return bad("it has a negative dimension");
    if (__builtin_mul_overflow(bytes, length, &bytes)) return bad("it is too large");
  }
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % block_length(tensor.type) != 0) return bad("its rows are no whole blocks");
  return {};
}

}  // namespace

int64_t TensorSpec::rows() const {
  if (shape.empty()) return 1;
  int64_t count = shape.back() == 0 ? 0 : 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return count;
}

int64_t TensorSpec::row_bytes() const {
  const int64_t row = shape.empty() ? 1 : shape.back();
  return row / block_length(type) * block_bytes(type);
}

Result<void> check_specs(std::span<const TensorSpec> tensors) {
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    if (auto size = check_size(tensor); !size) return size;
    names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("cannot write tensor {} twice into one file", quoted_name(*twice))};
  }
  return {};
}

Result<void> write_rows(OutputFile& file, std::span<const TensorSpec> tensors, size_t tensor,
                        const FillRows& fill) {
  const int64_t rows = tensors[tensor].rows();
  const int64_t row_bytes = tensors[tensor].row_bytes();
  const int64_t piece_rows = std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1,
                                                 std::max<int64_t>(rows, 1));
  std::vector<std::byte> piece(static_cast<size_t>(rows == 0 ? 0 : piece_rows * row_bytes));
  for (int64_t row = 0; row < rows; row += piece_rows) {
    const int64_t count = std::min(piece_rows, rows - row);
    const auto bytes = std::span(piece).first(static_cast<size_t>(count * row_bytes));
    if (auto filled = fill(tensor, row, bytes); !filled) return filled;
    if (auto written = file.write(bytes); !written) return written;
  }
  return {};
}

Result<void> write_padding(OutputFile& file, int64_t count) {
  constexpr std::array<std::byte, 4096> kZeros = {};
  check(count >= 0 && count < static_cast<int64_t>(kZeros.size()), "write_padding: out of range");
  return file.write(std::span(kZeros).first(static_cast<size_t>(count)));
}

}  // namespace paceline
