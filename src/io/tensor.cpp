// Element types: names, sizes, values in float32.
#include <cstring>

#include "base/check.h"
#include "base/types.h"
#include "io/blocks.h"
#include "io/checkpoint.h"

namespace paceline {
namespace {

struct TypeShape {
  const char* name;
  int length;  // elements of a block
  int bytes;   // of a block
};

const TypeShape& shape_of(DType type) {
  static constexpr TypeShape kShapes[] = {
      // in the order of DType
      {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},     {"Q8_0", 32, 34},
      {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},
      {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
      {"Q6_K", 256, 210},
  };
  static_assert(std::size(kShapes) == static_cast<size_t>(DType::Q6_K) + 1);
  return kShapes[static_cast<size_t>(type)];
}

}  // namespace

const char* to_string(DType type) { return shape_of(type).name; }
int block_length(DType type) { return shape_of(type).length; }
int block_bytes(DType type) { return shape_of(type).bytes; }

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
    case DType::BF16:
      for (float* x = out.data(); x != end; ++x, block += 2) {
        uint16_t bits = 0;
        std::memcpy(&bits, block, sizeof(bits));
        *x = tensor.type == DType::F16 ? to_f32(f16{bits}) : to_f32(bf16{bits});
      }
      return;
    default:
      break;
  }
  const DecodeBlock decode = block_decoder(tensor.type);
  for (float* x = out.data(); x != end; x += length, block += bytes) decode(block, x);
}

}  // namespace paceline
