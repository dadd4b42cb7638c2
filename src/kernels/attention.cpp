#include "kernels/attention.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

size_t attend_scratch_floats(int positions, int head_dim) {
  const auto round_up = [](int n) { return (static_cast<size_t>(n) + 15) / 16 * 16; };
  return kMaxQueries * (round_up(positions) + round_up(head_dim));
}

void attend(const AttendArgs& args, float* scratch, size_t scratch_per_thread,
            const Kernels& kernels) {
  check(args.n_heads % args.n_kv_heads == 0, "query heads share key heads evenly");
  check(args.value_stride % kTileOutputs == 0 && args.value_stride >= args.head_dim,
        "values are padded to whole vectors");
  const int64_t items = static_cast<int64_t>(args.rows) * args.n_heads;
  // Items of one key head stand together; a few pieces a thread keep them together mostly.
  const int threads = kernels.pool->size();
  const auto pieces = static_cast<int>(std::min<int64_t>(items, threads == 1 ? 1 : 2 * threads));
  kernels.pool->run(pieces, [&](int thread, int piece) {
    const auto first = static_cast<int>(items * piece / pieces);
    const auto last = static_cast<int>(items * (piece + 1) / pieces);
    kernels.table->attend(args, first, last, scratch + thread * scratch_per_thread);
  });
}

}  // namespace paceline
