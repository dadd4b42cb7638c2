// The products that go through tiles. Compiled by kernels/CMakeLists.txt: for AMX, and for its
// emulation.
#include "kernels/isa/tile_body.h"
#include "kernels/tile_kernels.h"

namespace paceline::PACELINE_ISA {

extern const TileKernels tiles;
const TileKernels tiles = {
    .matmul_bf16 = matmul_bf16_tiles,
    .matmul_quant = {matmul_quant_tiles<BlockQ8_0, WeightType::Q8_0>,
                     matmul_quant_tiles<BlockQ4_0, WeightType::Q4_0>,
                     matmul_quant_tiles<BlockQ4_1, WeightType::Q4_1>},
    .split_rows = split_rows,
    .bf16_tile = bf16_tile,
};

}  // namespace paceline::PACELINE_ISA
