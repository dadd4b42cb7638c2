// Reads the head of a GGUF file, version 2 or 3, and checks all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/gguf_metadata.h"

namespace paceline {

// The place of a file among the parts of a split model.
struct GgufSplit {
  int64_t number = 0;  // from 0
  int64_t count = 1;
  int64_t n_tensors = 0;  // of all parts together
};

struct GgufContents {
  std::vector<Tensor> tensors;     // in file order; data are views into the file's bytes
  GgufMetadata metadata;           // views too
  std::optional<GgufSplit> split;  // none for a whole model
  std::vector<std::string> warnings;
};

// Whatever the bytes are, this gives a value or an error, in time and memory linear in the part of
// the file that was really there: no count and no length is believed before the file is known to
// have room for it. Only the head is touched, never tensor data.
//
// Beyond the container's own rules, as ggml reads it: tensors lie in the order of their infos
// without gaps, at most 4 dimensions, tensor names of 1 to 63 bytes, keys of 1 to 65,535 bytes
// without a zero byte, nothing named twice, bools 0 or 1, no arrays of arrays. `general.alignment`
// must be a u32, a power of two and a multiple of 8 (what the format's text and ggml both accept).
// Types that DType does not have are Unsupported by their names, as are version 1 and big-endian
// files. One part of a split model is read like any file; its place among the parts is checked
// against itself alone. `name` is how errors call the file.
Result<GgufContents> read_gguf(std::span<const std::byte> file, const std::string& name);

}  // namespace paceline
