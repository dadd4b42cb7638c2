#include "io/blocks.h"

#include <cstring>

#include "base/check.h"
#include "base/types.h"

namespace paceline {
namespace {

constexpr int kBlock = 32;        // elements of a small block, and of a sub-block of Q4_K and Q5_K
constexpr int kSuperBlock = 256;  // elements of a K block

float load_half(const std::byte* at) {
  f16 value;
  std::memcpy(&value, at, sizeof(value));
  return to_f32(value);
}

int byte_at(const std::byte* bytes, int i) { return static_cast<int>(bytes[i]); }
int signed_at(const std::byte* bytes, int i) { return static_cast<int8_t>(bytes[i]); }

uint32_t load_u32(const std::byte* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// d, then 32 signed bytes: d * q.
void q8_0(const std::byte* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(signed_at(block + 2, i)) * d;
}

// d, then 16 bytes of nibbles, low halves first: d * (n - 8).
void q4_0(const std::byte* block, float* out) {
  const float d = load_half(block);
  for (int i = 0; i < kBlock / 2; ++i) {
    const int byte = byte_at(block + 2, i);
    out[i] = d * static_cast<float>((byte & 15) - 8);
    out[i + kBlock / 2] = d * static_cast<float>((byte >> 4) - 8);
  }
}

// d, m, then nibbles as above: d * n + m.
void q4_1(const std::byte* block, float* out) {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  for (int i = 0; i < kBlock / 2; ++i) {
    const int byte = byte_at(block + 4, i);
    out[i] = d * static_cast<float>(byte & 15) + m;
    out[i + kBlock / 2] = d * static_cast<float>(byte >> 4) + m;
  }
}

// A word with the fifth bit of element i in bit i, then nibbles as above.
void five_bits(const std::byte* high_bits, const std::byte* nibbles, uint8_t* codes) {
  const uint32_t high = load_u32(high_bits);
  for (int i = 0; i < kBlock / 2; ++i) {
    const int byte = byte_at(nibbles, i);
    codes[i] = static_cast<uint8_t>((byte & 15) | (high >> i & 1) << 4);
    codes[i + kBlock / 2] = static_cast<uint8_t>(byte >> 4 | (high >> (i + kBlock / 2) & 1) << 4);
  }
}

// d, fifth bits, nibbles: d * (n - 16).
void q5_0(const std::byte* block, float* out) {
  const float d = load_half(block);
  uint8_t codes[kBlock];
  q5_0_codes(block, codes);
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(codes[i] - 16);
}

// d, m, fifth bits, nibbles: d * n + m.
void q5_1(const std::byte* block, float* out) {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  uint8_t codes[kBlock];
  five_bits(block + 4, block + 8, codes);
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(codes[i]) + m;
}

// Two bits of element i of a K block: the byte i mod 32 of each half's 32 holds four, lowest first.
int two_bits(const std::byte* packed, int i) {
  return byte_at(packed, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

// 16 bytes of scale (low) and minimum (high) for 16 elements each, two bits an element, d, dmin.
void q2_k(const std::byte* block, float* out) {
  const float d = load_half(block + 80);
  const float d_min = load_half(block + 82);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int scales = byte_at(block, i / 16);
    const float scale = d * static_cast<float>(scales & 15);
    const float minimum = d_min * static_cast<float>(scales >> 4);
    out[i] = scale * static_cast<float>(two_bits(block + 16, i)) - minimum;
  }
}

// Third bits (unset takes 4 away), two bits an element, 16 scales of six bits in 12 bytes, d.
void q3_k(const std::byte* block, float* out) {
  const std::byte* packed = block + 96;
  const float d = load_half(block + 108);
  float scales[16];
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? byte_at(packed, i) & 15 : byte_at(packed, i - 8) >> 4;
    const int high = byte_at(packed, 8 + i % 4) >> (i / 4 * 2) & 3;
    scales[i] = d * static_cast<float>((low | high << 4) - 32);
  }
  for (int i = 0; i < kSuperBlock; ++i) {
    const bool third = (byte_at(block, i % 32) >> (i / 32) & 1) != 0;
    const int code = two_bits(block + 32, i) - (third ? 0 : 4);
    out[i] = scales[i / 16] * static_cast<float>(code);
  }
}

// d, dmin, 12 bytes of sub-scales, then for Q5_K fifth bits (sub-block g in bit g of byte i mod
// 32), then nibbles, low ones in even sub-blocks: d * scale * n - dmin * minimum.
template <bool kFiveBits>
void q45_k(const std::byte* block, float* out) {
  const float d = load_half(block);
  const float d_min = load_half(block + 2);
  const std::byte* high = block + 16;
  const std::byte* nibbles = block + (kFiveBits ? 48 : 16);
  for (int g = 0; g < kSuperBlock / kBlock; ++g) {
    const auto [scale, minimum] = sub_scale(block + 4, g);
    const float step = d * static_cast<float>(scale);
    const float low = d_min * static_cast<float>(minimum);
    for (int i = 0; i < kBlock; ++i) {
      const int byte = byte_at(nibbles, g / 2 * kBlock + i);
      int code = g % 2 == 0 ? byte & 15 : byte >> 4;
      if (kFiveBits) code |= (byte_at(high, i) >> g & 1) << 4;
      *out++ = step * static_cast<float>(code) - low;
    }
  }
}

// Low nibbles, upper two bits, 16 signed scales, d: d * scale * (n - 32).
void q6_k(const std::byte* block, float* out) {
  const float d = load_half(block + 208);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int byte = byte_at(block, i / 128 * 64 + i % 64);
    const int low = i % 128 < 64 ? byte & 15 : byte >> 4;
    const int code = (low | two_bits(block + 128, i) << 4) - 32;
    out[i] = d * static_cast<float>(signed_at(block + 192, i / 16)) * static_cast<float>(code);
  }
}

}  // namespace

void q5_0_codes(const std::byte* block, uint8_t* codes) { five_bits(block + 2, block + 6, codes); }

SubScale sub_scale(const std::byte* packed, int sub_block) {
  const auto at = [&](int i) { return byte_at(packed, i); };
  const int g = sub_block;
  if (g < 4) return {static_cast<uint8_t>(at(g) & 63), static_cast<uint8_t>(at(g + 4) & 63)};
  return {static_cast<uint8_t>((at(g + 4) & 15) | at(g - 4) >> 6 << 4),
          static_cast<uint8_t>(at(g + 4) >> 4 | at(g) >> 6 << 4)};
}

DecodeBlock block_decoder(DType type) {
  switch (type) {
    case DType::Q8_0:
      return q8_0;
    case DType::Q4_0:
      return q4_0;
    case DType::Q4_1:
      return q4_1;
    case DType::Q5_0:
      return q5_0;
    case DType::Q5_1:
      return q5_1;
    case DType::Q2_K:
      return q2_k;
    case DType::Q3_K:
      return q3_k;
    case DType::Q4_K:
      return q45_k<false>;
    case DType::Q5_K:
      return q45_k<true>;
    case DType::Q6_K:
      return q6_k;
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      break;
  }
  check(false, "only quantised types have blocks");
  return nullptr;
}

}  // namespace paceline
