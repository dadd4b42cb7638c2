// Tiles in hardware. Written as assembly, not with the compiler's intrinsics: those of g++ 12 take
// a literal number for a tile, and its _tile_loadconfig declares 8 of the configuration's 64 bytes
// as read, so that stores to the rest vanish and the first tile instruction is illegal.
// Included by tiles.h.
#pragma once

namespace paceline::PACELINE_ISA {
namespace {

// From this many rows on block-quantised products go through tiles. Fewer are as fast with VNNI,
// and need no trip of their sums through memory. Bits are the same.
inline constexpr int kLeastTileRows = 5;

// The tile registers of the thread that runs. Configured while this lives, released after: the
// system then saves no tiles for the thread.
class Tiles {
 public:
  LANES_INLINE Tiles() {}
  LANES_INLINE ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  LANES_INLINE void configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  template <int T>
  LANES_INLINE void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  LANES_INLINE void read(const void* p, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  LANES_INLINE void write(void* p, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(T) : "memory");
  }
  // C += A B on pairs of bf16.
  template <int C, int A, int B>
  LANES_INLINE void add_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
  }
  // C += A B on fours of int8, both signed.
  template <int C, int A, int B>
  LANES_INLINE void add_int8() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
  }
};

}  // namespace
}  // namespace paceline::PACELINE_ISA
