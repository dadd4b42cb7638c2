// What AMX tiles compute; with_tiles() makes a table of it and of another instruction set's
// kernels.
#pragma once

#include "kernels/table.h"

namespace paceline {

struct TileKernels {
  void (*matmul_bf16)(const MatmulArgs&, int first_tile, int last_tile);      // amx numerics
  void (*matmul_quant[3])(const MatmulArgs&, int first_tile, int last_tile);  // Q8_0, Q4_0, Q4_1
  decltype(KernelTable::split_rows) split_rows;
  decltype(KernelTable::bf16_tile) bf16_tile;
};

// `base` with its block-quantised products replaced, and for amx numerics those of bf16 weights.
KernelTable with_tiles(const KernelTable& base, const TileKernels& tiles, const char* isa,
                       const char* variant, Numerics numerics);

// Whether this machine has AMX with bf16 and int8 and the system lets this process use it, which is
// asked for here.
bool amx_is_usable();

}  // namespace paceline
