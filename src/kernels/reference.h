// The definition of every kernel in plain loops: what the tables in kernels/isa must equal, bit for
// bit. Written for reading; slow. Weights are rows as a file holds them, so that packing is
// checked along with the arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "kernels/pair_order.h"
#include "kernels/table.h"

namespace paceline::reference {

// One row of activations in int8 blocks of 32 (docs/numerics.md, rule 4).
struct QuantizedRow {
  std::vector<int8_t> q;
  std::vector<float> d;      // a block: largest magnitude / 127
  std::vector<int32_t> sum;  // a block: sum of q
};
QuantizedRow quantize_row(std::span<const float> x);

// One output of y = x * W^T: x against one row of weights as a file holds it (rules 1 and 4, and
// the amx numerics).
float product(WeightType type, std::span<const float> x, const std::byte* weights,
              Numerics numerics = Numerics::Portable);

// --- amx numerics ---
// x = high + low, each rounded to bf16.
struct SplitValue {
  bf16 high, low;
};
SplitValue split(float x);
// One element of a tile after TDPBF16PS: c and the products of pairs of a row of A and a column of
// B, which are as long.
float add_pairs(std::span<const bf16> a, std::span<const bf16> b, float c,
                PairOrder order = kPairOrder);

// Sixteen virtual lanes, element i in lane i mod 16, folded 8-4-2-1 (rule 2).
float sum_in_lanes(std::span<const float> x);

float exp(float x);  // rule 6
std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight, float eps);
void rope(std::span<float> head, std::span<const float> cos, std::span<const float> sin);
float silu_mul(float gate, float up);
float gelu_mul(float gate, float up);
float tanh(float x);
float soft_cap(float x, float cap);

// One query head at position keys.size() / head_dim - 1: keys and values, those of its own path,
// are (positions, head_dim), already rounded to the cache's type (rule 3). window: 0, or how many
// positions are seen at most.
std::vector<float> attend(std::span<const float> q, std::span<const float> keys,
                          std::span<const float> values, float scale, int window = 0);

int argmax(std::span<const float> x);
float log_sum_exp(std::span<const float> x);

// Drawing (kernels/sampling.h).
uint32_t noise_bits(NoiseKey key, uint32_t id);
float gumbel(uint32_t bits);
float scaled(float logit, const RowScale& row);
float exp_sum(std::span<const float> logits, const RowScale& row);
// Every id's noise is looked at.
Drawn draw(std::span<const float> logits, const DrawArgs& args);

}  // namespace paceline::reference
