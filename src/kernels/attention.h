// Attention of the blocks of several sequences over one layer's caches; docs/numerics.md, rule 3.
//
//   out[row, head] = sum over p <= position(row) of softmax(q . k_p * scale) v_p
//
// where k_p and v_p are those of the row's own path. With a window w, p > position(row) - w as
// well. Query head j reads key head j / (n_heads / n_kv_heads). Row r's bits depend on the
// positions that it sees alone: nothing behind its own, before its window or on another branch has
// any influence, not even a NaN; nor has the slot at which a row of its path stands.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"

namespace paceline {

// Floats of scratch that one thread needs to attend over a cache of so many slots.
size_t attend_scratch_floats(int slots, int head_dim);

// One part for each sequence. scratch: attend_scratch_floats(...) of the longest for each thread of
// the pool, one behind another.
void attend(std::span<const AttendArgs> parts, float* scratch, size_t scratch_per_thread,
            const Kernels& kernels);

}  // namespace paceline
