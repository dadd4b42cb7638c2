// Parity of operations that turn a row into a row. Inside the box only.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/mat.h"
#include "measure/parity_run.h"

namespace paceline::measure {

struct RowOperation {
  std::string op;
  std::string shape;
  std::string type;
  int inputs = 0;         // float32 values that a row takes
  size_t out_bytes = 0;   // that it gives,
  size_t element = 4;     // in elements of so many bytes
  double cost = 100;      // of a row, in multiply-adds
  bool in_blocks = true;  // false: the kernel takes one row at a time
  // Rows of x to rows of out. which[i]: number of row i among the kParityRows, for what belongs to
  // a row and is no input: its position.
  std::function<void(const Kernels& kernels, Mat<const float> x, std::span<const int> which,
                     std::byte* out)>
      compute = {};
  // One row by the definition; null where the definition is another operation's.
  std::function<std::vector<std::byte>(std::span<const float> x, int which)> reference = {};
};

ParityPiece piece_of(RowOperation operation);

// The bytes of values.
template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

}  // namespace paceline::measure
