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
  // order for one row than for several, the fault that this project exists to exclude; and the
  // branches of a tree are attended under a mask, summed in the order of their slots. Tests and
  // probes must notice either. As fast as it comes, so that what exactness costs can be measured.
  bool wide = false;
};

}  // namespace paceline
