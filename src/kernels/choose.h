// Which table of kernels runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numerics.h"
#include "base/result.h"
#include "kernels/table.h"

namespace paceline {

// Tables of one numerics that this machine can run, the best one last. Portable: never empty, since
// scalar always runs. Amx: the emulation, which is slow and never chosen unasked, then the hardware
// where there is some.
std::span<const KernelTable* const> kernel_tables(Numerics numerics = Numerics::Portable);

// Tables that this program has and this machine cannot run, with what is missing, a sentence each:
// "avx512-vnni: no AVX-512 VNNI on this machine".
std::vector<std::string> missing_kernel_tables();

// The best table of the instruction set with this name; of all when the name is empty. Without
// numerics asked for: amx where the instruction set is AMX, else portable. BadUsage when the name
// is unknown or has not the numerics asked for, Unsupported when this machine lacks it.
Result<const KernelTable*> choose_kernel_table(std::string_view isa,
                                               std::optional<Numerics> numerics = {});
// The same with the name that the environment variable PACELINE_ISA holds.
Result<const KernelTable*> choose_kernel_table(std::optional<Numerics> numerics = {});

}  // namespace paceline
