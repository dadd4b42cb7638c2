// The noise of seeded sampling, and how a token is drawn with it.
//
//   x[i]     = (logit[i] - top) / temperature      top: the row's largest logit
//   score[i] = x[i] + noise(seed, position, i)
//   token    = the id with the largest score, the lowest of equals
//
// With noise = -log(-log(u)), u uniform in (0, 1) and independent, id i is drawn with the
// probability e^x[i] / sum e^x (Gumbel 1954). The noise is a function of seed, position and id
// alone, so a token depends on nothing else: not on the round, the drafts, the threads or the
// neighbours.
//
// u has 32 bits: h = noise_bits(key, id), three multiplications of 32 bits between shifts, with the
// key of (seed, position) added at the start and again in the middle; 1 - u = (h + 1/2) / 2^32. So
// neither logarithm ever sees a 0, and -log(u) is exact to its last places where it decides, at u
// near 1. The noise lies between -3.14 and 22.88. For one key no two ids share a u.
//
// All arithmetic is that of docs/numerics.md, the same bits on every instruction set. Noise is
// evaluated only for ids that bounds do not rule out, most cheaply by x + 22.9, then by the bits of
// h; what is drawn does not depend on the bounds.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace paceline {

// Two words from a seed and the position of the token to draw.
NoiseKey noise_key(uint64_t seed, int64_t position);

}  // namespace paceline
