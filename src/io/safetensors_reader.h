// Reads the header of one safetensors file and checks all of it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"

namespace paceline {

inline constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;  // bytes, the format's own limit

struct SafetensorsContents {
  std::vector<Tensor> tensors;  // by offset in the file; data are views into the file's bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // __metadata__, sorted by key
};

// Whatever the bytes are, this gives a value or an error, in time and memory linear in the header.
//
// As the format's text has it: header of at most 100,000,000 bytes that begins with '{'; one entry
// a tensor with exactly dtype, shape and data_offsets; no name or key twice; the data section
// covered from its first to its last byte, without overlap and without holes. At most 8 dimensions.
// `__metadata__` maps strings to strings; null means the same as none, since MLX writes that.
// A dtype other than F32, F16, BF16 is Unsupported. A file without tensors is read: whether that
// makes sense is for the caller to say. `name` is how errors call the file.
Result<SafetensorsContents> read_safetensors(std::span<const std::byte> file,
                                             const std::string& name);

}  // namespace paceline
