// Float32 values into the elements or blocks of a file, bit for bit as the gguf package does it.
#pragma once

#include <span>

#include "io/checkpoint.h"

namespace paceline {

// For F32, F16, BF16, Q8_0, Q4_0 and Q4_1; the other types are only read.
//
// Writes values.size() / block_length(type) blocks; out has exactly their bytes, values are whole
// blocks. Per block of 32, in float32, each step rounded on its own:
//   Q8_0  d = max|x| / 127           q = x * (1/d), rounded half away from zero
//   Q4_0  d = x / -8, x the first value of largest magnitude
//                                     n = min(trunc(x * (1/d) + 8.5), 15)
//   Q4_1  d = (max - min) / 15       n = min(trunc((x - min) * (1/d) + 0.5), 15), m = min
// d and m are stored as f16 afterwards; for d = 0, 1/d counts as 0. F16 and BF16 round to nearest,
// ties to even.
// Where the package's own result is left to the compiler, because a value or 1/d is not finite, all
// codes of the block are those of zero; a value that is not finite stays visible in d or m.
void quantize(DType type, std::span<const float> values, std::span<std::byte> out);

}  // namespace paceline
