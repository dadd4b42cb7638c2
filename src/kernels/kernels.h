// What a pass runs with: a table of kernels and a pool of threads. Passed to everything that
// computes.
#pragma once

#include "base/threads.h"
#include "kernels/table.h"

namespace paceline {

struct Kernels {
  const KernelTable* table = nullptr;
  ThreadPool* pool = nullptr;
  // A negative control: products are dispatched by their number of rows and summed in another
  // order for one row than for several, the fault that this project exists to exclude. Tests and
  // probes must notice it. As fast as it comes, so that what exactness costs can be measured.
  bool wide = false;
};

}  // namespace paceline
