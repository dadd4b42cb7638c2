#include "io/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/types.h"

namespace paceline {
namespace {

constexpr int kBlocks = 24;

// A tensor of this type whose codes are random and whose scales are those of ordinary weights.
struct Random {
  explicit Random(DType type) {
    std::mt19937 random(11);
    const auto bytes = static_cast<size_t>(block_bytes(type));
    data.resize(kBlocks * bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    const auto put = [&](size_t at, float value) {
      const f16 half = to_f16(value);
      for (size_t block = 0; block < kBlocks; ++block)
        std::memcpy(&data[block * bytes + at], &half, 2);
    };
    switch (type) {
      case DType::Q2_K:
        put(80, 0.01f), put(82, 0.01f);
        break;
      case DType::Q3_K:
        put(108, 0.01f);
        break;
      case DType::Q6_K:
        put(208, 0.0001f);
        break;
      case DType::Q5_0:
        put(0, 0.01f);
        break;
      default:
        put(0, 0.0011f), put(2, 0.0017f);
    }
    tensor.type = type;
    tensor.shape = {kBlocks * block_length(type)};
    tensor.data = data;
  }
  std::vector<std::byte> data;
  Tensor tensor;
};

std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  dequantize(tensor, 0, values);
  return values;
}

// Root of the mean square of what the conversion changes, over that of the values.
double relative_error(const Tensor& tensor, DType to) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(tensor.elements() / block_length(to) * block_bytes(to)));
  convert(tensor, 0, to, bytes);
  Tensor converted = tensor;
  converted.type = to;
  converted.data = bytes;
  const auto before = values_of(tensor);
  const auto after = values_of(converted);
  double change = 0;
  double size = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    change += std::pow(after[i] - before[i], 2);
    size += std::pow(before[i], 2);
  }
  return std::sqrt(change / size);
}

TEST(Convert, FiveBitsAndOneScaleFitIntoQ8WithoutAChange) {
  EXPECT_TRUE(converts_exactly(DType::Q5_0, DType::Q8_0));
  EXPECT_EQ(relative_error(Random(DType::Q5_0).tensor, DType::Q8_0), 0.0);
}

// The codes of Q4_K stay; what is rounded is a scale and a minimum of 32 weights, to 11 bits.
TEST(Convert, SubBlocksOfFourBitsBecomeQ41UpToTheirScales) {
  EXPECT_EQ(streamed_as(DType::Q4_K), DType::Q4_1);
  EXPECT_FALSE(converts_exactly(DType::Q4_K, DType::Q4_1));
  const double error = relative_error(Random(DType::Q4_K).tensor, DType::Q4_1);
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 4e-4);
}

// Half a step of 1/127 of the largest of 32, evenly spread: about 0.6 % for weights like these.
TEST(Convert, OthersAreRoundedAnewToEightBits) {
  for (const DType type : {DType::Q5_1, DType::Q2_K, DType::Q3_K, DType::Q5_K, DType::Q6_K}) {
    EXPECT_EQ(streamed_as(type), DType::Q8_0);
    EXPECT_FALSE(converts_exactly(type, DType::Q8_0));
    const double error = relative_error(Random(type).tensor, DType::Q8_0);
    EXPECT_GT(error, 0.0) << to_string(type);
    EXPECT_LT(error, 0.009) << to_string(type);
  }
}

TEST(Convert, TypesWithKernelsStay) {
  for (const DType type :
       {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1})
    EXPECT_EQ(streamed_as(type), type);
}

TEST(Convert, ToF32GivesTheValuesInPiecesToo) {
  for (const DType type : {DType::Q5_0, DType::Q5_1, DType::Q2_K, DType::Q3_K, DType::Q4_K,
                           DType::Q5_K, DType::Q6_K}) {
    const Random from(type);
    const auto want = values_of(from.tensor);
    const auto length = static_cast<size_t>(block_length(type));
    const size_t first = 3 * length;
    std::vector<float> got(want.size() - first);  // more than one piece of 1,024, and a tail
    convert(from.tensor, static_cast<int64_t>(first), DType::F32,
            std::as_writable_bytes(std::span(got)));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[first + i]) << to_string(type);
    std::vector<bf16> narrow(got.size());
    convert(from.tensor, static_cast<int64_t>(first), DType::BF16,
            std::as_writable_bytes(std::span(narrow)));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(narrow[i].bits, to_bf16(got[i]).bits) << to_string(type);
  }
}

}  // namespace
}  // namespace paceline
