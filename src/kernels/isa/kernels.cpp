// The kernels of one instruction set. Compiled once for each by kernels/CMakeLists.txt.
#include "kernels/isa/attention_body.h"
#include "kernels/isa/math_body.h"
#include "kernels/isa/matmul_body.h"
#include "kernels/isa/quantize_body.h"
#include "kernels/isa/sampling_body.h"
#include "kernels/isa/wide_body.h"
#include "kernels/table.h"

namespace paceline::PACELINE_ISA {

extern const KernelTable table;
const KernelTable table = {
    .isa = PACELINE_ISA_FAMILY,
    .variant = PACELINE_ISA_VARIANT,
    .numerics = Numerics::Portable,
    .matmul = {matmul_float<WeightsF32>, matmul_float<WeightsBF16>, matmul_float<WeightsF16>,
               matmul_quant<BlockQ8_0>, matmul_quant<BlockQ4_0>, matmul_quant<BlockQ4_1>},
    .matmul_wide = {matmul_float_wide<WeightsF32>, matmul_float_wide<WeightsBF16>,
                    matmul_float_wide<WeightsF16>, matmul_quant_wide<BlockQ8_0>,
                    matmul_quant_wide<BlockQ4_0>, matmul_quant_wide<BlockQ4_1>},
    .quantize_blocks = quantize_blocks,
    .split_rows = nullptr,
    .bf16_tile = nullptr,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = gated<silu>,
    .gelu_mul = gated<gelu>,
    .soft_cap = soft_cap,
    .append_key = append_key,
    .append_value = append_value,
    .attend = attend,
    .argmax = argmax,
    .log_sum_exp = log_sum_exp,
    .group_max = group_max,
    .exp_sum = exp_sum,
    .exp_all = exp_all,
    .gather = gather,
    .draw = draw,
};

}  // namespace paceline::PACELINE_ISA
