// What both writers do alike: checks of a tensor list, and the streaming of its rows.
#pragma once

#include "io/output_file.h"
#include "io/writer.h"

namespace paceline {

// BadUsage for a name used twice, a negative dimension, rows that are no whole blocks, a size that
// 64 bits cannot count.
Result<void> check_specs(std::span<const TensorSpec> tensors);

// All rows of tensors[tensor], piece by piece.
Result<void> write_rows(OutputFile& file, std::span<const TensorSpec> tensors, size_t tensor,
                        const FillRows& fill);

// `count` zero bytes, fewer than 4,096.
Result<void> write_padding(OutputFile& file, int64_t count);

}  // namespace paceline
