// Tiles in C++, with the bits that the hardware gives: products of two bf16 are exact, every
// addition is a fused multiply-add rounded to nearest even, denormals count as zeros on the way in
// and become zeros on the way out. Included by tiles.h.
#pragma once

#include "kernels/pair_order.h"

namespace paceline::PACELINE_ISA {
namespace {

inline constexpr int kLeastTileRows = 1;  // nothing is slow here that tests should not reach

class Tiles {
 public:
  Tiles() = default;
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  void configure(const TileConfig& config) {
    config_ = config;
    __builtin_memset(data_, 0, sizeof(data_));
  }
  template <int T>
  void clear() {
    __builtin_memset(data_[T], 0, sizeof(data_[T]));
  }
  template <int T>
  void read(const void* p, int64_t stride) {
    clear<T>();
    for (int row = 0; row < config_.rows[T]; ++row)
      __builtin_memcpy(data_[T][row], static_cast<const std::byte*>(p) + row * stride,
                       config_.row_bytes[T]);
  }
  template <int T>
  void write(void* p, int64_t stride) {
    for (int row = 0; row < config_.rows[T]; ++row)
      __builtin_memcpy(static_cast<std::byte*>(p) + row * stride, data_[T][row],
                       config_.row_bytes[T]);
  }
  template <int C, int A, int B>
  void add_bf16() {
    for (int m = 0; m < config_.rows[C]; ++m) {
      auto* sums = reinterpret_cast<float*>(data_[C][m]);
      F even = zero();
      F odd = zero();
      if constexpr (kPairOrder == PairOrder::OneChain) even = without_denormals(load(sums));
      for (int k = 0; k < config_.rows[B]; ++k) {
        uint32_t pair;
        __builtin_memcpy(&pair, data_[A][m] + 4 * k, sizeof(pair));
        const I weights = iload(reinterpret_cast<const int32_t*>(data_[B][k]));
        const F even_weights = without_denormals(as_float(shift_left<16>(weights)));
        const F odd_weights =
            without_denormals(as_float(weights & iset1(static_cast<int32_t>(0xffff0000u))));
        even = fma_flushed(pair << 16, even_weights, even);
        F& second = kPairOrder == PairOrder::OneChain ? even : odd;
        second = fma_flushed(pair & 0xffff0000u, odd_weights, second);
      }
      if constexpr (kPairOrder == PairOrder::TwoChains)
        even = add_flushed(without_denormals(load(sums)), add_flushed(even, odd));
      store(sums, even);
    }
  }
  template <int C, int A, int B>
  void add_int8() {
    for (int m = 0; m < config_.rows[C]; ++m) {
      auto* sums = reinterpret_cast<int32_t*>(data_[C][m]);
      const auto* a = reinterpret_cast<const int8_t*>(data_[A][m]);
      for (int k = 0; k < config_.rows[B]; ++k) {
        const auto* b = reinterpret_cast<const int8_t*>(data_[B][k]);
        for (int n = 0; n < kLanes; ++n)
          for (int i = 0; i < 4; ++i) sums[n] += a[4 * k + i] * b[4 * n + i];
      }
    }
  }

 private:
  TileConfig config_;
  alignas(64) std::byte data_[8][kTileRows][kTileRowBytes];

  static I sign_of(F x) { return as_int(x) & iset1(static_cast<int32_t>(0x80000000u)); }
  static F magnitude_of(F x) { return as_float(as_int(x) & iset1(0x7fffffff)); }
  static F without_denormals(F x) {
    return select(magnitude_of(x) < set1(0x1p-126f), as_float(sign_of(x)), x);
  }
  // A result is flushed if, rounded as if there were no least exponent, it lies below 2^-126: the
  // same sum 2^32 times as large tells. A sum that overflows there is not below.
  static F fma_flushed(uint32_t a_bits, F b, F c) {
    float a;
    __builtin_memcpy(&a, &a_bits, sizeof(a));
    if (__builtin_fabsf(a) < 0x1p-126f) a = __builtin_copysignf(0.0f, a);
    const F sum = fma(set1(a), b, c);
    const F scaled = fma(set1(a * 0x1p32f), b, c * set1(0x1p32f));
    return select(magnitude_of(scaled) < set1(0x1p-94f), as_float(sign_of(sum)), sum);
  }
  // A sum of two numbers that lies below 2^-126 is exact.
  static F add_flushed(F a, F b) { return without_denormals(a + b); }
};

}  // namespace
}  // namespace paceline::PACELINE_ISA
