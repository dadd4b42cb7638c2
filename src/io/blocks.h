// The quantised blocks of GGUF files, decoded. Layouts: docs/formats.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/checkpoint.h"

namespace paceline {

// Values of one block of a quantised type, block_length(type) of them. In float32, products left to
// right and then the sum, each rounded on its own, as the reference package does it.
using DecodeBlock = void (*)(const std::byte* block, float* out);
DecodeBlock block_decoder(DType type);

// The 32 codes of a Q5_0 block (0 to 31, 16 is zero), in the order of the elements.
void q5_0_codes(const std::byte* block, uint8_t* codes);

// Scale and minimum of sub-block 0 to 7 of a Q4_K or Q5_K block, six bits each, from the 12 bytes
// that hold them.
struct SubScale {
  uint8_t scale;
  uint8_t minimum;
};
SubScale sub_scale(const std::byte* packed, int sub_block);

}  // namespace paceline
