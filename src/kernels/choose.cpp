#include "kernels/choose.h"

#include <array>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace paceline {

namespace scalar {
extern const KernelTable table;
}
#if defined(__x86_64__)
namespace avx2_nof16c {
extern const KernelTable table;
}
namespace avx2 {
extern const KernelTable table;
}
namespace avx512 {
extern const KernelTable table;
}
namespace avx512_vnni {
extern const KernelTable table;
}
#endif

namespace {

struct Tables {
  std::array<const KernelTable*, 5> list = {};
  size_t count = 0;
  void add(const KernelTable& table) { list[count++] = &table; }
};

#if defined(__x86_64__)
// Which registers the operating system saves: bits of XCR0. Without these the instructions fault
// even where CPUID names them.
uint64_t saved_registers() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

Tables find_tables() {
  Tables tables;
  tables.add(scalar::table);
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return tables;
  const bool fma = (c & bit_FMA) != 0;
  const bool f16c = (c & bit_F16C) != 0;
  const bool xsave = (c & bit_OSXSAVE) != 0;
  const uint64_t saved = xsave ? saved_registers() : 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return tables;
  const bool avx2 = (b & bit_AVX2) != 0 && fma && (saved & 0x6) == 0x6;
  if (!avx2) return tables;
  tables.add(avx2_nof16c::table);
  if (!f16c) return tables;
  tables.add(avx2::table);
  constexpr uint32_t kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  if ((b & kAvx512) != kAvx512 || (saved & 0xe6) != 0xe6) return tables;
  tables.add(avx512::table);
  if ((c & bit_AVX512VNNI) != 0) tables.add(avx512_vnni::table);
  return tables;
}
#else
Tables find_tables() {
  Tables tables;
  tables.add(scalar::table);
  return tables;
}
#endif

}  // namespace

std::span<const KernelTable* const> kernel_tables() {
  static const Tables tables = find_tables();
  return std::span(tables.list).first(tables.count);
}

std::vector<std::string> missing_kernel_tables() {
  struct Known {
    std::string_view variant;
    std::string_view needs;
  };
  constexpr std::array kKnown = {
      Known{"avx2-nof16c", "AVX2 and FMA"}, Known{"avx2", "AVX2, FMA and F16C"},
      Known{"avx512", "AVX-512 (F, BW, DQ, VL)"}, Known{"avx512-vnni", "AVX-512 VNNI"}};
  std::vector<std::string> missing;
  for (const Known& known : kKnown) {
    bool runs = false;
    for (const KernelTable* table : kernel_tables()) runs = runs || table->variant == known.variant;
    if (!runs)
      missing.push_back(std::string(known.variant) + ": no " + std::string(known.needs) +
                        " on this machine");
  }
  return missing;
}

Result<const KernelTable*> choose_kernel_table(std::string_view isa) {
  const auto tables = kernel_tables();
  if (isa.empty()) return tables.back();
  for (size_t i = tables.size(); i-- > 0;)
    if (isa == tables[i]->isa || isa == tables[i]->variant) return tables[i];
  for (const std::string_view known : {"scalar", "avx2", "avx512", "amx"})
    if (isa == known)
      return Error{ErrorCode::Unsupported, "PACELINE_ISA=" + std::string(isa) +
                                               ": this machine or build has no such instruction "
                                               "set; the best here is " +
                                               tables.back()->variant};
  return Error{ErrorCode::BadUsage,
               "PACELINE_ISA wants scalar, avx2, avx512 or amx, not '" + std::string(isa) + "'"};
}

Result<const KernelTable*> choose_kernel_table() {
  const char* forced = std::getenv("PACELINE_ISA");
  return choose_kernel_table(forced == nullptr ? "" : forced);
}

}  // namespace paceline
