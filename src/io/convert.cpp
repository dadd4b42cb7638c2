#include "io/convert.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/types.h"
#include "io/blocks.h"
#include "io/quantize.h"

namespace paceline {
namespace {

constexpr int kBlock = 32;

void store_half(float value, std::byte* out) {
  const f16 half = to_f16(value);
  std::memcpy(out, &half, sizeof(half));
}

float load_half(const std::byte* at) {
  f16 value;
  std::memcpy(&value, at, sizeof(value));
  return to_f32(value);
}

// d * (n - 16) with n from 0 to 31 is d * q with q a signed byte.
void q5_0_to_q8_0(const std::byte* block, std::byte* out) {
  std::array<uint8_t, kBlock> codes;
  q5_0_codes(block, codes.data());
  std::memcpy(out, block, 2);
  for (int i = 0; i < kBlock; ++i) out[2 + i] = static_cast<std::byte>(codes[i] - 16);
}

// A sub-block has the form of Q4_1: (d * scale) * n + (-dmin * minimum). Two of them share 32 bytes
// of nibbles, the first in the low ones; Q4_1 puts elements i and i + 16 of one block together.
void q4_k_to_q4_1(const std::byte* block, std::byte* out) {
  const float d = load_half(block);
  const float d_min = load_half(block + 2);
  for (int g = 0; g < 8; ++g, out += block_bytes(DType::Q4_1)) {
    const auto [scale, minimum] = sub_scale(block + 4, g);
    store_half(d * static_cast<float>(scale), out);
    store_half(-(d_min * static_cast<float>(minimum)), out + 2);
    const std::byte* nibbles = block + 16 + g / 2 * kBlock;
    const int shift = g % 2 * 4;
    for (int i = 0; i < kBlock / 2; ++i) {
      const std::byte low = nibbles[i] >> shift & std::byte{15};
      const std::byte high = nibbles[i + kBlock / 2] >> shift & std::byte{15};
      out[4 + i] = low | high << 4;
    }
  }
}

}  // namespace

DType streamed_as(DType stored) {
  switch (stored) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::Q8_0:
    case DType::Q4_0:
    case DType::Q4_1:
      return stored;
    case DType::Q4_K:
      return DType::Q4_1;
    case DType::Q5_0:
    case DType::Q5_1:
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::Q5_K:
    case DType::Q6_K:
      return DType::Q8_0;
  }
  check(false, "unknown DType");
  return stored;
}

bool converts_exactly(DType from, DType to) {
  return from == to || to == DType::F32 || (from == DType::Q5_0 && to == DType::Q8_0);
}

void convert(const Tensor& tensor, int64_t first, DType to, std::span<std::byte> out) {
  const int64_t from_length = block_length(tensor.type);
  const int64_t to_length = block_length(to);
  const auto out_blocks = static_cast<int64_t>(out.size()) / block_bytes(to);
  const int64_t count = out_blocks * to_length;
  check(first % from_length == 0 && count % from_length == 0 &&
            out_blocks * block_bytes(to) == static_cast<int64_t>(out.size()),
        "convert: not whole blocks");
  check(first >= 0 && first + count <= tensor.elements(), "convert: beyond the tensor");
  if (count == 0) return;

  const int64_t from_bytes = block_bytes(tensor.type);
  const std::byte* block = tensor.data.data() + first / from_length * from_bytes;
  if (tensor.type == to) {
    std::memcpy(out.data(), block, out.size());
    return;
  }
  const auto each_block = [&](auto convert_block) {
    const int64_t step = from_length / to_length * block_bytes(to);
    for (int64_t at = 0; at < count; at += from_length, block += from_bytes)
      convert_block(block, out.data() + at / from_length * step);
  };
  if (tensor.type == DType::Q5_0 && to == DType::Q8_0) return each_block(q5_0_to_q8_0);
  if (tensor.type == DType::Q4_K && to == DType::Q4_1) return each_block(q4_k_to_q4_1);

  constexpr int64_t kPiece = 1024;  // whole blocks of every type
  std::array<float, kPiece> values;
  for (int64_t done = 0; done < count; done += kPiece) {
    const int64_t n = std::min(kPiece, count - done);
    const auto piece = std::span(values).first(static_cast<size_t>(n));
    dequantize(tensor, first + done, piece);
    const auto bytes_of = [&](int64_t elements) {
      return static_cast<size_t>(elements / to_length * block_bytes(to));
    };
    quantize(to, piece, out.subspan(bytes_of(done), bytes_of(n)));
  }
}

}  // namespace paceline
