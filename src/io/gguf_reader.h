// Reads the head of a GGUF file, version 2 or 3, and checks all of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/gguf_metadata.h"

namespace paceline {

struct GgufContents {
  std::vector<Tensor> tensors;  // in file order; data are views into the file's bytes
  GgufMetadata metadata;        // views too
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
// Types other than F32, F16, BF16, Q8_0, Q4_0, Q4_1 are Unsupported, as are version 1, big-endian
// files and parts of split files. `name` is how errors call the file.
Result<GgufContents> read_gguf(std::span<const std::byte> file, const std::string& name);

}  // namespace paceline
