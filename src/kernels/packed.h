// Weight matrices as the kernels stream them: tiles of 16 outputs, repacked once at load without
// changing a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/table.h"

namespace paceline {

const char* to_string(WeightType type);  // "q4_1"
bool is_quantized(WeightType type);

// Bytes of a row as a file holds it.
size_t row_bytes(WeightType type, int n_in);
// Bytes of a tile of 16 outputs.
//   f32, f16   [n_in][16]
//   bf16       [n_in / 2][16][2], an odd last input as [16][2] with zeros behind it
//   q8_0       per block of 32 inputs: d [16] f16, then [8][16][4] int8
//   q4_0       d [16] f16, then [4][16][4] bytes; low nibble input 4v + i, high 16 + 4v + i
//   q4_1       d [16] f16, m [16] f16, then the same
// Block-quantised tiles stand one behind another. Float tiles stand in bands of kBandTiles, fewer
// in the last: a line of each tile, [16] or for bf16 [16][2], then the next line of each. Several
// chains of sums are then fed by one stream of memory, which is a tenth faster at one row.
size_t tile_bytes(WeightType type, int n_in);

// A packed matrix; a view.
struct PackedMatrix {
  WeightType type = WeightType::F32;
  int n_out = 0;
  int n_in = 0;
  const std::byte* data = nullptr;  // 64-byte aligned; tiles() of tile_bytes(type, n_in)

  int tiles() const { return (n_out + kTileOutputs - 1) / kTileOutputs; }
  size_t bytes() const { return tiles() * tile_bytes(type, n_in); }
};

// Packs one tile of `matrix` into its place in `data`, which has room for all of them and holds
// zeros there. rows[i] points to output i's bytes as a file holds them (need not be aligned); null
// for outputs past the end.
void pack_tile(const PackedMatrix& matrix, int tile,
               std::span<const std::byte* const, kTileOutputs> rows, std::byte* data);

// One row's bytes as a file holds them: what pack_tile took.
void stored_row(const PackedMatrix& matrix, int row, std::span<std::byte> out);

// One row of the matrix in float32: an embedding. Product and sum are rounded separately, so that
// values equal those of the reference packages bit for bit.
void unpack_row(const PackedMatrix& matrix, int row, std::span<float> out);

}  // namespace paceline
