#include "kernels/choose.h"

#include <array>
#include <cstdlib>
#include <string>

#include "kernels/tile_kernels.h"

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
namespace amx {
extern const TileKernels tiles;
}
#endif
namespace amx_emulated {
extern const TileKernels tiles;
}

namespace {

struct Tables {
  std::array<const KernelTable*, 6> list = {};
  size_t count = 0;
  void add(const KernelTable& table) { list[count++] = &table; }
};

struct AllTables {
  Tables portable;
  Tables amx;            // the emulation first
  bool has_amx = false;  // and the hardware last
};

const KernelTable& emulated_amx(const KernelTable& base) {
  static const KernelTable table =
      with_tiles(base, amx_emulated::tiles, "amx-emulated", "amx-emulated", Numerics::Amx);
  return table;
}

#if defined(__x86_64__)
// Which registers the operating system saves: bits of XCR0. Without these the instructions fault
// even where CPUID names them.
uint64_t saved_registers() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

AllTables find_tables() {
  AllTables tables;
  tables.portable.add(scalar::table);
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
  tables.portable.add(avx2_nof16c::table);
  if (!f16c) return tables;
  tables.portable.add(avx2::table);
  tables.amx.add(emulated_amx(avx2::table));
  constexpr uint32_t kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  if ((b & kAvx512) != kAvx512 || (saved & 0xe6) != 0xe6) return tables;
  tables.portable.add(avx512::table);
  if ((c & bit_AVX512VNNI) == 0) return tables;
  tables.portable.add(avx512_vnni::table);
  if (!amx_is_usable()) return tables;
  static const KernelTable portable_amx =
      with_tiles(avx512_vnni::table, amx::tiles, "amx", "avx512-amx", Numerics::Portable);
  static const KernelTable amx =
      with_tiles(avx512_vnni::table, amx::tiles, "amx", "avx512-amx", Numerics::Amx);
  tables.portable.add(portable_amx);
  tables.amx.add(amx);
  tables.has_amx = true;
  return tables;
}
#else
AllTables find_tables() {
  AllTables tables;
  tables.portable.add(scalar::table);
  tables.amx.add(emulated_amx(scalar::table));
  return tables;
}
#endif

const AllTables& all_tables() {
  static const AllTables tables = find_tables();
  return tables;
}

// The best table of one numerics with this name; null if there is none.
const KernelTable* find_table(std::string_view isa, Numerics numerics) {
  const auto tables = kernel_tables(numerics);
  for (size_t i = tables.size(); i-- > 0;)
    if (isa == tables[i]->isa || isa == tables[i]->variant) return tables[i];
  return nullptr;
}

Error without_numerics(std::string_view isa, Numerics numerics) {
  return {ErrorCode::BadUsage, "PACELINE_ISA=" + std::string(isa) + " has no " +
                                   to_string(numerics) + " numerics; leave one of the two away"};
}

}  // namespace

std::span<const KernelTable* const> kernel_tables(Numerics numerics) {
  const Tables& tables = numerics == Numerics::Amx ? all_tables().amx : all_tables().portable;
  return std::span(tables.list).first(tables.count);
}

std::vector<std::string> missing_kernel_tables() {
  struct Known {
    std::string_view variant;
    std::string_view needs;
  };
  constexpr std::array kKnown = {Known{"avx2-nof16c", "AVX2 and FMA"},
                                 Known{"avx2", "AVX2, FMA and F16C"},
                                 Known{"avx512-novnni", "AVX-512 (F, BW, DQ, VL)"},
                                 Known{"avx512-vnni", "AVX-512 VNNI"}, Known{"avx512-amx", "AMX"}};
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

Result<const KernelTable*> choose_kernel_table(std::string_view isa,
                                               std::optional<Numerics> numerics) {
  const KernelTable* best = kernel_tables().back();
  if (isa.empty()) {
    const bool has_amx = all_tables().has_amx;
    if (numerics == Numerics::Amx && !has_amx)
      return Error{ErrorCode::Unsupported,
                   "amx numerics want AMX with bf16 tiles, and the best that this machine or build "
                   "has is " +
                       std::string(best->variant) +
                       "; use portable numerics, or PACELINE_ISA=amx-emulated for the same bits, "
                       "slowly"};
    const bool portable = numerics == Numerics::Portable || !has_amx;
    return portable ? best : kernel_tables(Numerics::Amx).back();
  }
  const KernelTable* amx = find_table(isa, Numerics::Amx);
  const KernelTable* portable = find_table(isa, Numerics::Portable);
  if (amx != nullptr || portable != nullptr) {
    const KernelTable* wanted = numerics.value_or(Numerics::Amx) == Numerics::Amx ? amx : portable;
    if (wanted == nullptr && !numerics) wanted = portable;
    if (wanted == nullptr) return without_numerics(isa, *numerics);
    return wanted;
  }
  for (const std::string_view known : {"scalar", "avx2", "avx512", "amx", "amx-emulated"})
    if (isa == known)
      return Error{ErrorCode::Unsupported,
                   "PACELINE_ISA=" + std::string(isa) +
                       ": this machine or build has no such instruction set; the best here is " +
                       best->variant};
  return Error{ErrorCode::BadUsage,
               "PACELINE_ISA wants scalar, avx2, avx512, amx or amx-emulated, not '" +
                   std::string(isa) + "'"};
}

Result<const KernelTable*> choose_kernel_table(std::optional<Numerics> numerics) {
  const char* forced = std::getenv("PACELINE_ISA");
  return choose_kernel_table(forced == nullptr ? "" : forced, numerics);
}

}  // namespace paceline
