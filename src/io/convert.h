// From the type in which a file holds weights to the one in which the kernels stream them.
#pragma once

#include <span>

#include "io/checkpoint.h"

namespace paceline {

// The type in which a matrix of this type runs unless the user asks for another: itself where it
// has kernels, else
//   Q5_0                      Q8_0   same codes, same d: no value changes
//   Q4_K                      Q4_1   same codes; d * scale and dmin * minimum are rounded to f16
//   Q5_1 Q2_K Q3_K Q5_K Q6_K  Q8_0   rounded anew
// docs/formats.md has the errors, measured.
DType streamed_as(DType stored);

// Whether the conversion changes no value, whatever the values are.
bool converts_exactly(DType from, DType to);

// Elements of the tensor in another type: whole blocks of both types from element `first` on, as
// many as `out` holds. To F32: the values of dequantize(). To another type of its own: the bytes.
// Otherwise those values rounded as io/quantize.h says, except for the two pairs above.
void convert(const Tensor& tensor, int64_t first, DType to, std::span<std::byte> out);

}  // namespace paceline
