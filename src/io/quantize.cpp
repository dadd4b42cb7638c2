#include "io/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/types.h"

namespace paceline {
namespace {

constexpr size_t kBlock = 32;

using Values = std::span<const float, kBlock>;

void store(f16 value, std::byte* out) { std::memcpy(out, &value, sizeof(value)); }

// 1/d, or 0 where that is no number to multiply with: then every code is that of zero.
float inverse(float d, Values x) {
  const float inverse_d = d == 0.0f ? 0.0f : 1.0f / d;
  const bool finite =
      std::isfinite(inverse_d) && std::ranges::all_of(x, [](float v) { return std::isfinite(v); });
  return finite ? inverse_d : 0.0f;
}

float finite_or_zero(float x) { return std::isfinite(x) ? x : 0.0f; }

// |x| first, then half up, which is half away from zero.
int8_t rounded(float x) {
  const float magnitude = std::fabs(x);
  const int whole = static_cast<int>(magnitude);
  const int value = whole + static_cast<int>(2.0f * (magnitude - static_cast<float>(whole)));
  return static_cast<int8_t>(x < 0.0f ? -value : value);
}

void q8_0_block(Values x, std::byte* out) {
  float amax = 0.0f;
  for (const float v : x) amax = std::isnan(v) ? v : std::max(amax, std::fabs(v));
  const float d = amax / 127.0f;
  const float inverse_d = inverse(d, x);
  store(to_f16(d), out);
  for (size_t i = 0; i < kBlock; ++i) {
    out[2 + i] = static_cast<std::byte>(rounded(finite_or_zero(x[i]) * inverse_d));
  }
}

// Low nibbles hold the first half of the block, high nibbles the second.
void store_nibbles(const std::array<int, kBlock>& codes, std::byte* out) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    out[i] = static_cast<std::byte>(codes[i] | codes[i + kBlock / 2] << 4);
  }
}

void q4_0_block(Values x, std::byte* out) {
  float largest = x[0];
  for (const float v : x) {
    if (std::fabs(v) > std::fabs(largest) || std::isnan(v)) largest = v;
  }
  const float d = largest / -8.0f;
  const float inverse_d = inverse(d, x);
  std::array<int, kBlock> codes = {};
  for (size_t i = 0; i < kBlock; ++i) {
    codes[i] = std::min(static_cast<int>(finite_or_zero(x[i]) * inverse_d + 8.5f), 15);
  }
  store(to_f16(d), out);
  store_nibbles(codes, out + 2);
}

void q4_1_block(Values x, std::byte* out) {
  float low = x[0];
  float high = x[0];
  for (const float v : x) {
    low = std::isnan(v) ? v : std::min(low, v);
    high = std::isnan(v) ? v : std::max(high, v);
  }
  const float d = (high - low) / 15.0f;
  const float inverse_d = std::isfinite(d) ? inverse(d, x) : 0.0f;
  std::array<int, kBlock> codes = {};
  for (size_t i = 0; i < kBlock; ++i) {
    // As the reference package rounds, to the bit: the values are not negative.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    codes[i] = std::min(static_cast<int>(finite_or_zero(x[i] - low) * inverse_d + 0.5f), 15);
  }
  store(to_f16(d), out);
  store(to_f16(low), out + 2);
  store_nibbles(codes, out + 4);
}

template <class Block>
void each_block(std::span<const float> values, std::byte* out, int bytes, Block block) {
  for (size_t i = 0; i < values.size(); i += kBlock, out += bytes) {
    block(values.subspan(i).first<kBlock>(), out);
  }
}

}  // namespace

void quantize(DType type, std::span<const float> values, std::span<std::byte> out) {
  const auto length = static_cast<size_t>(block_length(type));
  const int bytes = block_bytes(type);
  check(values.size() % length == 0, "quantize: not whole blocks");
  check(out.size() == values.size() / length * static_cast<size_t>(bytes),
        "quantize: the output has another size than the blocks");
  if (values.empty()) return;

  switch (type) {
    case DType::F32:
      std::memcpy(out.data(), values.data(), values.size_bytes());
      return;
    case DType::F16:
      for (size_t i = 0; i < values.size(); ++i) store(to_f16(values[i]), &out[2 * i]);
      return;
    case DType::BF16:
      for (size_t i = 0; i < values.size(); ++i) store(f16{to_bf16(values[i]).bits}, &out[2 * i]);
      return;
    case DType::Q8_0:
      return each_block(values, out.data(), bytes, q8_0_block);
    case DType::Q4_0:
      return each_block(values, out.data(), bytes, q4_0_block);
    case DType::Q4_1:
      return each_block(values, out.data(), bytes, q4_1_block);
    default:
      check(false, "quantize: a type that is only read");
  }
}

}  // namespace paceline
