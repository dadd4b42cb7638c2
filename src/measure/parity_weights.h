// A matrix of random weights for parity, packed, with some of its rows as a file would hold them.
// Inside the box only.
#pragma once

#include <cstddef>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "base/threads.h"
#include "kernels/packed.h"

namespace paceline::measure {

struct ParityWeights {
  HugeBuffer memory;
  PackedMatrix packed;
  std::vector<int> sampled;  // outputs whose rows are kept for the definition, ascending
  std::vector<std::vector<std::byte>> rows;
};

// Every output is sampled when there are no more than `samples`. TooLarge when the matrix would
// take more than half of the memory that is free.
Result<ParityWeights> draw_weights(WeightType type, int n_out, int n_in, int samples, uint64_t seed,
                                   ThreadPool& pool);

}  // namespace paceline::measure
