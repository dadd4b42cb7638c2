// Which kernels of training run.
#pragma once

#include <span>

#include "base/result.h"
#include "kernels/table.h"
#include "train/table.h"

namespace paceline::train {

enum class Products {
  Auto,  // Bf16 where the machine has it
  F32,
  Bf16,  // pairs of bf16, summed in float32
};

// Tables that this machine can run, the best one last; never empty.
std::span<const TrainTable* const> train_tables();

// The best table within the instruction set of the engine's. Unsupported where bf16 products are
// asked for and the machine, or the instruction set, has none.
Result<const TrainTable*> choose_train_table(const KernelTable& engine, Products products);

}  // namespace paceline::train
