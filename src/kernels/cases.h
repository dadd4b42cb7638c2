// Shapes that kernels are tested and timed with.
#pragma once

#include "kernels/table.h"

namespace paceline {

struct MatmulCase {
  const char* name;
  int n_out;
  int n_in;
};

// Products of real models, for timing.
inline constexpr MatmulCase kRealProducts[] = {
    {"smollm2-135m q", 576, 576},        {"smollm2-135m k", 192, 576},
    {"smollm2-135m up", 1536, 576},      {"smollm2-135m down", 576, 1536},
    {"smollm2-135m output", 49152, 576}, {"qwen3-0.6b up", 3072, 1024},
    {"qwen3-0.6b down", 1024, 3072},     {"llama-3.2-1b up", 8192, 2048},
};

// Whatever does not fill tiles, row groups or pairs, for testing. Quantised types take those whose
// n_in is a whole number of blocks.
inline constexpr MatmulCase kOddProducts[] = {
    {"one", 1, 1},    {"odd", 17, 3},          {"pair tail", 33, 31}, {"tile", 16, 32},
    {"tail", 35, 96}, {"many tiles", 131, 64}, {"deep", 48, 577},     {"blocks", 40, 288},
};

inline constexpr WeightType kWeightTypes[] = {WeightType::F32,  WeightType::BF16, WeightType::F16,
                                              WeightType::Q8_0, WeightType::Q4_0, WeightType::Q4_1};

}  // namespace paceline
