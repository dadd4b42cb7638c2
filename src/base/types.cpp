#include "base/types.h"

namespace paceline {

float to_f32(f16 x) {
  const uint32_t sign = (x.bits & 0x8000u) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1fu;
  const uint32_t mantissa = x.bits & 0x3ffu;
  if (exponent == 0x1f) {  // infinity or NaN; a NaN comes out quiet, as the hardware does it
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | quiet);
  }
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Zero or a denormal: mantissa * 2^-24, exact in float32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

f16 to_f16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const auto with_sign = [sign](uint32_t value) {
    return f16{static_cast<uint16_t>(sign | value)};
  };
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return with_sign(0x7c00u);  // 65536 and more
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half, 2^-14: the value in units of 2^-24. Adding 0.5 as a float
    // lets the hardware round to nearest, ties to even, at exactly that unit.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return with_sign(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  }
  // Normal: drop 13 mantissa bits with rounding; a carry runs into the exponent as it should, and
  // from 65520 on it gives infinity.
  return with_sign((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13);
}

}  // namespace paceline
