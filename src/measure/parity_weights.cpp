#include "measure/parity_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "measure/parity_run.h"

namespace paceline::measure {
namespace {

// The bits of a random value with these many bits of mantissa, exponents lowest .. lowest + 7.
uint32_t value_bits(uint64_t random, int mantissa_bits, int sign_bit, uint32_t lowest) {
  const auto mantissa = static_cast<uint32_t>(random) & ((1u << mantissa_bits) - 1);
  const auto exponent = lowest + (static_cast<uint32_t>(random >> 32) & 7u);
  const auto sign = static_cast<uint32_t>(random >> 63);
  return (sign << sign_bit) | (exponent << mantissa_bits) | mantissa;
}

template <class Bits>
void fill(std::vector<std::byte>& row, ParityRandom& random, int mantissa_bits, int sign_bit,
          uint32_t lowest) {
  for (size_t at = 0; at < row.size(); at += sizeof(Bits)) {
    const auto bits = static_cast<Bits>(value_bits(random.next(), mantissa_bits, sign_bit, lowest));
    std::memcpy(&row[at], &bits, sizeof(bits));
  }
}

void fill_blocks(WeightType type, std::vector<std::byte>& row, ParityRandom& random) {
  for (size_t at = 0; at < row.size(); at += 2) {
    const uint64_t bits = random.next();
    std::memcpy(&row[at], &bits, 2);
  }
  const size_t block = row_bytes(type, kQuantBlock);
  const auto put_scale = [&](size_t at) {  // f16 of magnitude 2^-10 to 2^-2
    const auto bits = static_cast<uint16_t>(value_bits(random.next(), 10, 15, 5));
    std::memcpy(&row[at], &bits, sizeof(bits));
  };
  for (size_t at = 0; at < row.size(); at += block) {
    put_scale(at);
    if (type == WeightType::Q4_1) put_scale(at + 2);
  }
}

void fill_row(WeightType type, std::vector<std::byte>& row, ParityRandom& random) {
  switch (type) {
    case WeightType::F32:
      fill<uint32_t>(row, random, 23, 31, 119);
      return;
    case WeightType::BF16:
      fill<uint16_t>(row, random, 7, 15, 119);
      return;
    case WeightType::F16:
      fill<uint16_t>(row, random, 10, 15, 7);
      return;
    default:
      fill_blocks(type, row, random);
  }
}

std::vector<int> sampled_outputs(int n_out, int samples, uint64_t seed) {
  std::vector<int> outputs;
  if (n_out <= samples) {
    for (int o = 0; o < n_out; ++o) outputs.push_back(o);
    return outputs;
  }
  ParityRandom random(seed);
  outputs = {0, n_out - 1};
  while (static_cast<int>(outputs.size()) < samples) {
    const int o = random.below(n_out);
    if (std::find(outputs.begin(), outputs.end(), o) == outputs.end()) outputs.push_back(o);
  }
  std::sort(outputs.begin(), outputs.end());
  return outputs;
}

}  // namespace

Result<ParityWeights> draw_weights(WeightType type, int n_out, int n_in, int samples, uint64_t seed,
                                   ThreadPool& pool) {
  ParityWeights w;
  w.packed = {type, n_out, n_in, nullptr};
  const size_t bytes = w.packed.bytes();
  const uint64_t free = available_memory();
  if (bytes > free / 2) {
    return Error{ErrorCode::TooLarge,
                 fmt::format("it takes {:.1f} GB, and {:.1f} GB are free",
                             static_cast<double>(bytes) / 1e9, static_cast<double>(free) / 1e9)};
  }
  auto memory = HugeBuffer::allocate(bytes);
  if (!memory) return memory.error();
  w.memory = std::move(*memory);
  w.packed.data = w.memory.data();
  w.sampled = sampled_outputs(n_out, samples, seed);
  w.rows.resize(w.sampled.size());
  const size_t size = row_bytes(type, n_in);
  pool.split(w.packed.tiles(), 1, [&](int64_t begin, int64_t end) {
    std::array<std::vector<std::byte>, kTileOutputs> rows;
    for (int64_t tile = begin; tile < end; ++tile) {
      std::array<const std::byte*, kTileOutputs> pointers = {};
      for (int o = 0; o < kTileOutputs; ++o) {
        const int output = static_cast<int>(tile) * kTileOutputs + o;
        if (output >= n_out) break;
        rows[o].resize(size);
        ParityRandom random(seed ^ (static_cast<uint64_t>(output) << 20));
        fill_row(type, rows[o], random);
        pointers[o] = rows[o].data();
        const auto kept = std::lower_bound(w.sampled.begin(), w.sampled.end(), output);
        if (kept != w.sampled.end() && *kept == output) w.rows[kept - w.sampled.begin()] = rows[o];
      }
      pack_tile(w.packed, static_cast<int>(tile), pointers, w.memory.data());
    }
  });
  return w;
}

}  // namespace paceline::measure
