// For tests: every table of kernels that this machine can run, emulated ones among them.
#pragma once

#include <vector>

#include "kernels/choose.h"

namespace paceline {

// The AVX-512 kernels in portable C (isa/emulate_avx512.h), where this machine can run them.
namespace avx512_emulated {
extern const KernelTable table;
}
namespace avx512_vnni_emulated {
extern const KernelTable table;
}

inline std::vector<const KernelTable*> all_tables() {
  const auto real = kernel_tables();
  std::vector<const KernelTable*> tables(real.begin(), real.end());
#if defined(PACELINE_TEST_EMULATED)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    tables.push_back(&avx512_emulated::table);
    tables.push_back(&avx512_vnni_emulated::table);
  }
#endif
  return tables;
}

}  // namespace paceline
