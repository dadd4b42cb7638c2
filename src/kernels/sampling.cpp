#include "kernels/sampling.h"

namespace paceline {
namespace {

uint64_t mixed(uint64_t x) {  // the finaliser of splitmix64 (Steele, Lea and Flood 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

NoiseKey noise_key(uint64_t seed, int64_t position) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  const uint64_t key = mixed(mixed(seed + kStep) + kStep * static_cast<uint64_t>(position));
  return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)};
}

}  // namespace paceline
