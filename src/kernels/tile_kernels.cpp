#include "kernels/tile_kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace paceline {

KernelTable with_tiles(const KernelTable& base, const TileKernels& tiles, const char* isa,
                       const char* variant, Numerics numerics) {
  KernelTable table = base;
  table.isa = isa;
  table.variant = variant;
  table.numerics = numerics;
  for (int i = 0; i < 3; ++i)
    table.matmul[static_cast<int>(WeightType::Q8_0) + i] = tiles.matmul_quant[i];
  if (numerics == Numerics::Amx) {
    table.matmul[static_cast<int>(WeightType::BF16)] = tiles.matmul_bf16;
    table.split_rows = tiles.split_rows;
    table.bf16_tile = tiles.bf16_tile;
  }
  return table;
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

// CPUID names the three extensions, and tiles are as large as the kernels take them for.
bool processor_has_amx() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  constexpr uint32_t kBf16 = 1u << 22;
  constexpr uint32_t kTile = 1u << 24;
  constexpr uint32_t kInt8 = 1u << 25;
  constexpr uint32_t kAll = kBf16 | kTile | kInt8;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  if (__get_cpuid_count(0x1d, 1, &a, &b, &c, &d) == 0) return false;  // palette 1
  const uint32_t tile_bytes = a >> 16;
  const uint32_t row_bytes = b & 0xffff;
  const uint32_t tiles = b >> 16;
  const uint32_t rows = c & 0xffff;
  return tile_bytes == 1024 && row_bytes == 64 && tiles == 8 && rows == 16;
}

// Whether the operating system saves tiles: bits 17 and 18 of XCR0.
bool system_saves_tiles() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint32_t kTileStates = 0x60000;
  return (low & kTileStates) == kTileStates;
}

// Linux gives a process no room for tiles until it asks; the answer holds for all its threads.
bool system_permits_tiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool amx_is_usable() {
  static const bool usable = processor_has_amx() && system_saves_tiles() && system_permits_tiles();
  return usable;
}
#else
bool amx_is_usable() { return false; }
#endif

}  // namespace paceline
