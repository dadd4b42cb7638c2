// The tile registers of AMX and the few operations that products need, as instructions or in C++.
// Eight registers of up to 16 rows of 64 bytes. C += A B: a row of A holds the inputs of one
// activation row, a row of B two (bf16) or four (int8) inputs of 16 outputs, a row of C 16 sums.
#pragma once

#include "kernels/isa/lanes.h"

namespace paceline::PACELINE_ISA {
namespace {

inline constexpr int kTileRows = 16;
inline constexpr int kTileRowBytes = 64;

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  LANES_INLINE void set(int tile, int n_rows, int bytes) {
    rows[tile] = static_cast<uint8_t>(n_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace
}  // namespace paceline::PACELINE_ISA

#if defined(PACELINE_EMULATE_TILES)
#include "kernels/isa/tiles_emulated.h"
#else
#include "kernels/isa/tiles_amx.h"
#endif
