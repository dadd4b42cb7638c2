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

// Where a tile of float weights begins, and how far its lines are apart.
struct TileLines {
  size_t offset;
  size_t step;
};

TileLines lines_of(const PackedMatrix& m, int tile) {
  const int first = tile / kBandTiles * kBandTiles;
  const size_t line = kTileOutputs * (m.type == WeightType::F16 ? 2 : 4);
  return {first * tile_bytes(m.type, m.n_in) + (tile - first) * line,
          std::min(kBandTiles, m.tiles() - first) * line};
}

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

// Words of 16 rows, transposed: word w of row o goes to word o of line w. A cache line of each row
// at a time, so that lines are read and written whole; loading runs at the speed of memory.
template <class Word>
void pack_words(int n_words, std::span<const std::byte* const, kTileOutputs> rows, std::byte* lines,
                size_t step) {
  constexpr int kStep = 64 / sizeof(Word);
  for (int begin = 0; begin < n_words; begin += kStep) {
    const int n = std::min(kStep, n_words - begin);
    for (int o = 0; o < kTileOutputs; ++o) {
      if (rows[o] == nullptr) continue;
      const std::byte* from = rows[o] + begin * sizeof(Word);
      std::byte* to = lines + begin * step + o * sizeof(Word);
      for (int w = 0; w < n; ++w) std::memcpy(to + w * step, from + w * sizeof(Word), sizeof(Word));
    }
  }
}

// lines: of the tile; o: the output within it.
void unpack_floats(const PackedMatrix& m, const std::byte* lines, size_t step, int o,
                   std::span<float> out) {
  const auto element = [&](size_t at, auto x) {
    std::memcpy(&x, lines + at, sizeof(x));
    return x;
  };
  for (size_t k = 0; k < out.size(); ++k) {
    if (m.type == WeightType::F32)
      out[k] = element(k * step + o * 4, float{});
    else if (m.type == WeightType::F16)
      out[k] = to_f32(element(k * step + o * 2, f16{}));
    else
      out[k] = to_f32(element(k / 2 * step + o * 4 + k % 2 * 2, bf16{}));
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

void pack_tile(const PackedMatrix& m, int tile,
               std::span<const std::byte* const, kTileOutputs> rows, std::byte* data) {
  if (is_quantized(m.type)) {
    pack_blocks(m.type, m.n_in, rows, data + tile * tile_bytes(m.type, m.n_in));
    return;
  }
  const auto [offset, step] = lines_of(m, tile);
  std::byte* lines = data + offset;
  if (m.type == WeightType::F16) return pack_words<uint16_t>(m.n_in, rows, lines, step);
  // Of bf16 a pair of inputs is a word.
  const int n_words = m.type == WeightType::F32 ? m.n_in : m.n_in / 2;
  pack_words<uint32_t>(n_words, rows, lines, step);
  if (m.type == WeightType::F32 || m.n_in % 2 == 0) return;
  for (int o = 0; o < kTileOutputs; ++o)
    if (rows[o] != nullptr)
      std::memcpy(lines + n_words * step + o * 4, rows[o] + int64_t{n_words} * 4, 2);
}

void stored_row(const PackedMatrix& m, int row, std::span<std::byte> out) {
  check(row >= 0 && row < m.n_out, "a row lies inside its matrix");
  check(out.size() == row_bytes(m.type, m.n_in), "a row's bytes have room");
  const int o = row % kTileOutputs;
  std::byte* to = out.data();
  if (is_quantized(m.type)) {
    const auto [scales, weights] = block_shape(m.type);
    const std::byte* tile = m.data + row / kTileOutputs * tile_bytes(m.type, m.n_in);
    for (int b = 0; b < m.n_in / kQuantBlock; ++b, tile += tile_bytes(m.type, kQuantBlock)) {
      for (size_t s = 0; s < scales; ++s, to += 2)
        std::memcpy(to, tile + (s * kTileOutputs + o) * 2, 2);
      const std::byte* from = tile + 2 * scales * kTileOutputs + 4 * o;
      for (size_t at = 0; at < weights; at += 4, to += 4, from += 4 * kTileOutputs)
        std::memcpy(to, from, 4);
    }
    return;
  }
  // Words as pack_words has them; of an odd bf16 row the last one is half a word.
  const auto [offset, step] = lines_of(m, row / kTileOutputs);
  const size_t word = m.type == WeightType::F16 ? 2 : 4;
  const std::byte* from = m.data + offset + o * word;
  for (size_t at = 0; at < out.size(); at += word, from += step)
    std::memcpy(to + at, from, std::min(word, out.size() - at));
}

void unpack_row(const PackedMatrix& matrix, int row, std::span<float> out) {
  check(row >= 0 && row < matrix.n_out, "an embedding row lies inside the table");
  check(out.size() == static_cast<size_t>(matrix.n_in), "an embedding is as wide as its table");
  const int o = row % kTileOutputs;
  if (!is_quantized(matrix.type)) {
    const auto [offset, step] = lines_of(matrix, row / kTileOutputs);
    unpack_floats(matrix, matrix.data + offset, step, o, out);
    return;
  }
  const std::byte* tile = matrix.data + row / kTileOutputs * tile_bytes(matrix.type, matrix.n_in);
  const auto half = [](const std::byte* p) {
    f16 x;
    std::memcpy(&x.bits, p, 2);
    return to_f32(x);
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
    switch (matrix.type) {
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
      default:
        break;
    }
  }
}

}  // namespace paceline
