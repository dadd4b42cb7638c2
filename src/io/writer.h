// Writes weight files. Tensor bytes come from a callback in pieces, so a file may be larger than
// memory; it appears under its name only when it is whole (io/output_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "io/checkpoint.h"

namespace paceline {

struct TensorSpec {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> shape;  // outermost first

  int64_t rows() const;       // all dimensions but the last; 1 for a scalar, 0 where one is 0
  int64_t row_bytes() const;  // of the last dimension, in blocks
};

// Fills `rows`, whole rows of tensors[tensor] from `first_row` on, as many as its size says. Called
// tensor by tensor, front to back, with pieces of at most 4 MiB or one row. An error ends the
// writing and nothing is left behind.
using FillRows =
    std::function<Result<void>(size_t tensor, int64_t first_row, std::span<std::byte> rows)>;

// A safetensors file of F32, F16 and BF16 tensors. Tensors of four bytes an element are laid out
// first, and the data section begins on a multiple of 64, so every tensor lies aligned to its
// element. `metadata` gets "format": "pt" unless it has a format of its own. BadUsage for a name
// that is empty, used twice, no UTF-8, or the reserved `__metadata__`, and for a type that the
// format does not know.
Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const TensorSpec> tensors,
                               std::map<std::string, std::string> metadata, const FillRows& fill);

using GgufValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
                               int64_t, float, double, bool, std::string, std::vector<int32_t>,
                               std::vector<uint32_t>, std::vector<float>, std::vector<std::string>>;
struct GgufKeyValue {
  std::string key;
  GgufValue value;
};

// A GGUF file, version 3, alignment 32, padded to that at its end. Keys and tensors in the order
// given. BadUsage for what read_gguf would refuse: names empty, too long, used twice, more than 4
// dimensions, rows that are no whole blocks; and for the key general.alignment, which is ours.
Result<void> write_gguf(const std::filesystem::path& path, std::span<const GgufKeyValue> metadata,
                        std::span<const TensorSpec> tensors, const FillRows& fill);

}  // namespace paceline
