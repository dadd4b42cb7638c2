#include "kernels/packed.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/types.h"

namespace paceline {
namespace {

constexpr int kNibbleBytes = kQuantBlock / 2;

// Bytes of one block in a file: scales, then weights.
struct BlockShape {
  size_t scales;   // f16 values in front: d, or d and m
  size_t weights;  // bytes of weights for one output
};

BlockShape block_shape(WeightType type) {
  switch (type) {
    case WeightType::Q8_0:
      return {1, kQuantBlock};
    case WeightType::Q4_0:
      return {1, kNibbleBytes};
    case WeightType::Q4_1:
      return {2, kNibbleBytes};
    default:
      check(false, "only block-quantised types have blocks");
      return {};
  }
}

size_t element_bytes(WeightType type) { return type == WeightType::F32 ? 4 : 2; }

void pack_blocks(WeightType type, int n_in, std::span<const std::byte* const, kTileOutputs> rows,
                 std::byte* tile) {
  const auto [scales, weights] = block_shape(type);
  const size_t file_block = 2 * scales + weights;
  const size_t packed_block = kTileOutputs * file_block;
  for (int b = 0; b < n_in / kQuantBlock; ++b, tile += packed_block) {
    for (int o = 0; o < kTileOutputs; ++o) {
      if (rows[o] == nullptr) continue;  // the buffer is zero
      const std::byte* block = rows[o] + b * file_block;
      for (size_t s = 0; s < scales; ++s)
        std::memcpy(tile + (s * kTileOutputs + o) * 2, block + 2 * s, 2);
      std::byte* out = tile + 2 * scales * kTileOutputs + 4 * o;
      for (size_t at = 0; at < weights; at += 4, out += 4 * kTileOutputs)
        std::memcpy(out, block + 2 * scales + at, 4);
    }
  }
}

// Words of 16 rows, transposed: word w of row o goes to place 16 w + o. A cache line of each row at
// a time, so that lines are read and written whole; loading runs at the speed of memory.
template <class Word>
void pack_words(int n_words, std::span<const std::byte* const, kTileOutputs> rows,
                std::byte* tile) {
  constexpr int kStep = 64 / sizeof(Word);
  for (int begin = 0; begin < n_words; begin += kStep) {
    const int n = std::min(kStep, n_words - begin);
    for (int o = 0; o < kTileOutputs; ++o) {
      if (rows[o] == nullptr) continue;
      const std::byte* from = rows[o] + begin * sizeof(Word);
      std::byte* to = tile + (static_cast<int64_t>(begin) * kTileOutputs + o) * sizeof(Word);
      for (int w = 0; w < n; ++w)
        std::memcpy(to + w * kTileOutputs * sizeof(Word), from + w * sizeof(Word), sizeof(Word));
    }
  }
}

}  // namespace

const char* to_string(WeightType type) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "q8_0", "q4_0", "q4_1"};
  return kNames[static_cast<int>(type)];
}

bool is_quantized(WeightType type) { return type >= WeightType::Q8_0; }

size_t row_bytes(WeightType type, int n_in) {
  if (!is_quantized(type)) return element_bytes(type) * n_in;
  const auto [scales, weights] = block_shape(type);
  return (2 * scales + weights) * (n_in / kQuantBlock);
}

size_t tile_bytes(WeightType type, int n_in) {
  const int padded = type == WeightType::BF16 ? (n_in + 1) / 2 * 2 : n_in;
  return kTileOutputs * row_bytes(type, padded);
}

void pack_tile(WeightType type, int n_in, std::span<const std::byte* const, kTileOutputs> rows,
               std::byte* tile) {
  const bool whole = std::ranges::find(rows, nullptr) == rows.end();
  if (!whole) std::memset(tile, 0, tile_bytes(type, n_in));
  if (is_quantized(type)) return pack_blocks(type, n_in, rows, tile);
  const int n_words = n_in * static_cast<int>(element_bytes(type)) / 4;  // whole ones of a row
  switch (type) {
    case WeightType::F32:
      return pack_words<uint32_t>(n_in, rows, tile);
    case WeightType::F16:
      return pack_words<uint16_t>(n_in, rows, tile);
    default:  // bf16: a pair of inputs is a word
      pack_words<uint32_t>(n_words, rows, tile);
  }
  if (n_in % 2 == 0) return;
  std::byte* last = tile + static_cast<int64_t>(n_words) * kTileOutputs * 4;
  std::memset(last, 0, size_t{kTileOutputs} * 4);
  for (int o = 0; o < kTileOutputs; ++o)
    if (rows[o] != nullptr) std::memcpy(last + 4 * o, rows[o] + 4 * n_words, 2);
}

void unpack_row(const PackedMatrix& matrix, int row, std::span<float> out) {
  check(row >= 0 && row < matrix.n_out, "an embedding row lies inside the table");
  check(out.size() == static_cast<size_t>(matrix.n_in), "an embedding is as wide as its table");
  const std::byte* tile = matrix.data + row / kTileOutputs * tile_bytes(matrix.type, matrix.n_in);
  const int o = row % kTileOutputs;
  const auto half = [](const std::byte* p) {
    f16 x;
    std::memcpy(&x.bits, p, 2);
    return to_f32(x);
  };
  const auto element = [](const std::byte* p, auto x) {
    std::memcpy(&x, p, sizeof(x));
    return x;
  };
  const auto block_of = [&](int k) {
    return tile + k / kQuantBlock * tile_bytes(matrix.type, kQuantBlock);
  };
  // The byte of a nibble-packed block that holds input k, shifted so that its nibble is lowest.
  const auto nibble = [&](const std::byte* weights, int k) {
    const int j = k % kNibbleBytes;
    const auto byte = static_cast<int>(weights[(j / 4 * kTileOutputs + o) * 4 + j % 4]);
    return static_cast<float>(k % kQuantBlock < kNibbleBytes ? byte & 15 : byte >> 4);
  };
  for (int k = 0; k < matrix.n_in; ++k) {
    const int64_t at = static_cast<int64_t>(k) * kTileOutputs + o;
    switch (matrix.type) {
      case WeightType::F32:
        out[k] = element(tile + at * 4, float{});
        break;
      case WeightType::BF16: {
        const int64_t pair = (static_cast<int64_t>(k / 2) * kTileOutputs + o) * 2 + k % 2;
        out[k] = to_f32(element(tile + pair * 2, bf16{}));
        break;
      }
      case WeightType::F16:
        out[k] = half(tile + at * 2);
        break;
      case WeightType::Q8_0: {
        const std::byte* block = block_of(k);
        const int j = k % kQuantBlock;
        const auto q = static_cast<int8_t>(block[32 + (j / 4 * kTileOutputs + o) * 4 + j % 4]);
        out[k] = half(block + 2 * o) * static_cast<float>(q);
        break;
      }
      case WeightType::Q4_0: {
        const std::byte* block = block_of(k);
        out[k] = half(block + 2 * o) * (nibble(block + 32, k) - 8.0f);
        break;
      }
      case WeightType::Q4_1: {
        const std::byte* block = block_of(k);
        const float product = half(block + 2 * o) * nibble(block + 64, k);
        out[k] = product + half(block + 32 + 2 * o);
        break;
      }
    }
  }
}

}  // namespace paceline
