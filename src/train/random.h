// Numbers from a seed, the same on every machine.
#pragma once

#include <cstdint>

namespace paceline::train {

// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Below n; the bias of one in 2^64 / n does not matter here.
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  // About normal, of deviation 1: the sum of twelve uniform numbers less six.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_;
};

}  // namespace paceline::train
