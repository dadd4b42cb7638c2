// What a pass runs with: a table of kernels and a pool of threads. Passed to everything that
// computes.
#pragma once

#include "base/threads.h"
#include "kernels/table.h"

namespace paceline {

struct Kernels {
  const KernelTable* table = nullptr;
  ThreadPool* pool = nullptr;
  // A negative control: products of several rows are summed in another order than products of one
  // row, the fault that this project exists to exclude. Tests and probes must notice it.
  bool wide = false;
};

}  // namespace paceline
