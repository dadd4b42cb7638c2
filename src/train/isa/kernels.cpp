// The kernels of training of one instruction set. Compiled once for each by train/CMakeLists.txt.
#include "train/isa/product_body.h"
#include "train/isa/rows_body.h"
#include "train/table.h"

namespace paceline::PACELINE_ISA {

extern const train::TrainTable table;
const train::TrainTable table = {
    .name = PACELINE_ISA_VARIANT,
    .per_unit = kPerUnit,
    .panel = kPanel,
    .product = product,
    .left_rows = left_rows,
    .left_columns = left_columns,
    .right_rows = right_rows,
    .right_columns = right_columns,
    .rms_norm = rms_norm,
    .rms_norm_back = rms_norm_back,
    .rms_norm_back_weight = rms_norm_back_weight,
    .column_sums = column_sums,
    .swiglu = swiglu,
    .swiglu_back = swiglu_back,
    .rope = rope,
    .add = add,
    .round_bf16 = round_bf16,
    .dot = dot,
    .add_scaled = add_scaled,
    .exp_row = exp_row,
    .exp_minus = exp_minus,
    .scale = scale,
    .softmax_back = softmax_back,
    .softmax = softmax,
    .loss_row = loss_row,
    .sum_squares = sum_squares,
    .adam = adam,
};

}  // namespace paceline::PACELINE_ISA
