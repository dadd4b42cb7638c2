#include "kernels/attention.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

size_t attend_scratch_floats(int slots, int head_dim) {
  const auto round_up = [](int n) { return (static_cast<size_t>(n) + 15) / 16 * 16; };
  return kMaxQueries * (round_up(slots) + round_up(head_dim));
}

void attend(std::span<const AttendArgs> parts, float* scratch, size_t scratch_per_thread,
            const Kernels& kernels) {
  int64_t items = 0;
  for (const AttendArgs& part : parts) {
    check(part.n_heads % part.n_kv_heads == 0, "query heads share key heads evenly");
    check(part.value_stride % kTileOutputs == 0 && part.value_stride >= part.head_dim,
          "values are padded to whole vectors");
    check(part.window >= 0, "a window is a number of positions, or 0 for none");
    for (int row = 0; row < part.rows && part.parents != nullptr; ++row) {
      const int depth = part.positions[row] - part.first_open;
      check(depth == part.first_row + row || depth < kMostTreeRows,
            "a branch is no deeper than a tree has rows");
    }
    items += static_cast<int64_t>(part.rows) * part.n_heads;
  }
  // Items of one key head stand together; a few pieces a thread, or one a sequence, keep them
  // together mostly.
  const int threads = kernels.pool->size();
  const int64_t wanted = threads == 1 ? 1 : std::max<int64_t>(2 * threads, std::ssize(parts));
  const auto pieces = static_cast<int>(std::min(items, wanted));
  kernels.pool->run(pieces, [&](int thread, int piece) {
    const int64_t begin = items * piece / pieces;
    const int64_t end = items * (piece + 1) / pieces;
    int64_t before = 0;  // items of the parts passed so far
    for (const AttendArgs& part : parts) {
      const int64_t n = static_cast<int64_t>(part.rows) * part.n_heads;
      const auto first = static_cast<int>(std::max<int64_t>(begin - before, 0));
      const auto last = static_cast<int>(std::min(end - before, n));
      before += n;
      if (first < last)
        kernels.table->attend(part, first, last, scratch + thread * scratch_per_thread);
    }
  });
}

}  // namespace paceline
