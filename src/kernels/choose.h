// Which table of kernels runs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/table.h"

namespace paceline {

// Tables that this machine can run, the best one last. Never empty: scalar always runs.
std::span<const KernelTable* const> kernel_tables();

// Tables that this program has and this machine cannot run, with what is missing, a sentence each:
// "avx512-vnni: no AVX-512 VNNI on this machine".
std::vector<std::string> missing_kernel_tables();

// The best table of the instruction set with this name; of all when the name is empty. BadUsage
// when it is unknown, Unsupported when this machine lacks it.
Result<const KernelTable*> choose_kernel_table(std::string_view isa);
// The same with the name that the environment variable PACELINE_ISA holds.
Result<const KernelTable*> choose_kernel_table();

}  // namespace paceline
