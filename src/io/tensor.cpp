// Element types: names, sizes, values in float32.
#include <cstring>

#include "base/check.h"
#include "base/types.h"
#include "io/checkpoint.h"

namespace paceline {
namespace {

constexpr int kBlock = 32;  // elements of a Q8_0, Q4_0 or Q4_1 block

f16 load_f16(const std::byte* at) {
  f16 value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// d, then 32 signed bytes: d * q.
void q8_0_block(const std::byte* block, float* out) {
  const float d = to_f32(load_f16(block));
  for (int i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

// d, then 16 bytes of nibbles, low halves first: d * (n - 8).
void q4_0_block(const std::byte* block, float* out) {
  const float d = to_f32(load_f16(block));
  for (int i = 0; i < kBlock / 2; ++i) {
    const int byte = static_cast<int>(block[2 + i]);
    out[i] = d * static_cast<float>((byte & 15) - 8);
    out[i + kBlock / 2] = d * static_cast<float>((byte >> 4) - 8);
  }
}

// d, m, then nibbles as above: d * n + m, two roundings.
void q4_1_block(const std::byte* block, float* out) {
  const float d = to_f32(load_f16(block));
  const float m = to_f32(load_f16(block + 2));
  for (int i = 0; i < kBlock / 2; ++i) {
    const int byte = static_cast<int>(block[4 + i]);
    out[i] = d * static_cast<float>(byte & 15) + m;
    out[i + kBlock / 2] = d * static_cast<float>(byte >> 4) + m;
  }
}

}  // namespace

const char* to_string(DType type) {
  switch (type) {
    case DType::F32:
      return "F32";
    case DType::F16:
      return "F16";
    case DType::BF16:
      return "BF16";
    case DType::Q8_0:
      return "Q8_0";
    case DType::Q4_0:
      return "Q4_0";
    case DType::Q4_1:
      return "Q4_1";
  }
  check(false, "unknown DType");
  return "";
}

int block_length(DType type) {
  return type == DType::Q8_0 || type == DType::Q4_0 || type == DType::Q4_1 ? kBlock : 1;
}

int block_bytes(DType type) {
  switch (type) {
    case DType::F32:
      return 4;
    case DType::F16:
    case DType::BF16:
      return 2;
    case DType::Q8_0:
      return 2 + kBlock;
    case DType::Q4_0:
      return 2 + kBlock / 2;
    case DType::Q4_1:
      return 4 + kBlock / 2;
  }
  check(false, "unknown DType");
  return 0;
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  return count;
}

void dequantize(const Tensor& tensor, int64_t first, std::span<float> out) {
  const int64_t length = block_length(tensor.type);
  const int64_t bytes = block_bytes(tensor.type);
  const auto count = static_cast<int64_t>(out.size());
  check(first >= 0 && first % length == 0 && count % length == 0, "dequantize: not whole blocks");
  check(first + count <= tensor.elements(), "dequantize: beyond the tensor");
  if (out.empty()) return;

  const std::byte* block = tensor.data.data() + first / length * bytes;
  float* const end = out.data() + count;
  switch (tensor.type) {
    case DType::F32:
      std::memcpy(out.data(), block, out.size_bytes());
      return;
    case DType::F16:
      for (float* x = out.data(); x != end; ++x, block += 2) *x = to_f32(load_f16(block));
      return;
    case DType::BF16:
      for (float* x = out.data(); x != end; ++x, block += 2) {
        *x = to_f32(bf16{load_f16(block).bits});
      }
      return;
    case DType::Q8_0:
      for (float* x = out.data(); x != end; x += kBlock, block += bytes) q8_0_block(block, x);
      return;
    case DType::Q4_0:
      for (float* x = out.data(); x != end; x += kBlock, block += bytes) q4_0_block(block, x);
      return;
    case DType::Q4_1:
      for (float* x = out.data(); x != end; x += kBlock, block += bytes) q4_1_block(block, x);
      return;
  }
}

}  // namespace paceline
