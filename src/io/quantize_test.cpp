#include "io/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/types.h"
#include "io/gguf_format.h"
#include "io/test_files.h"

namespace paceline {
namespace {

// A section of tests/golden/quant_blocks.bin, which tools/oracle/make_quant_golden.py writes.
struct Section {
  bool quantizes = false;  // else blocks are given and values expected
  DType type = DType::F32;
  int64_t elements = 0;
  std::string given;
  std::string expected;
};

std::vector<Section> golden() {
  const std::string file =
      read_whole(std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/golden/quant_blocks.bin");
  std::vector<Section> sections;
  size_t at = 8;
  while (at < file.size()) {
    uint32_t head[5];  // kind, type id, blocks, elements and bytes of a block
    std::memcpy(head, file.data() + at, sizeof(head));
    at += sizeof(head);
    Section section;
    section.quantizes = head[0] == 1;
    section.type = gguf::type_of(head[1]).value();
    section.elements = int64_t{head[2]} * head[3];
    const size_t values = size_t{head[2]} * head[3] * sizeof(float);
    const size_t blocks = size_t{head[2]} * head[4];
    section.given = file.substr(at, section.quantizes ? values : blocks);
    section.expected = file.substr(at + section.given.size(), section.quantizes ? blocks : values);
    at += section.given.size() + section.expected.size();
    sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Equal to the bit, except that a NaN is any NaN.
bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(Dequantize, GivesTheBitsOfTheReferencePackage) {
  int n_types = 0;
  for (const Section& section : golden()) {
    if (section.quantizes) continue;
    ++n_types;
    Tensor tensor;
    tensor.type = section.type;
    tensor.shape = {section.elements};
    tensor.data = bytes_of(section.given);
    std::vector<float> got(static_cast<size_t>(section.elements));
    dequantize(tensor, 0, got);
    const std::vector<float> want = floats(section.expected);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same(got[i], want[i]))
          << to_string(section.type) << " element " << i << ": " << got[i] << ", not " << want[i];
    }
  }
  EXPECT_EQ(n_types, 13);
}

TEST(Dequantize, ReadsAPieceFromAnyBlockAndAnyAddress) {
  for (const Section& section : golden()) {
    if (section.quantizes) continue;
    const std::string shifted = "x" + section.given;  // odd addresses
    Tensor tensor;
    tensor.type = section.type;
    tensor.shape = {section.elements};
    tensor.data = bytes_of(shifted).subspan(1);
    const std::vector<float> want = floats(section.expected);
    const auto block = static_cast<size_t>(block_length(section.type));
    const size_t first = 96 / std::min<size_t>(block, 32) * block;
    std::vector<float> got(2 * block);
    dequantize(tensor, static_cast<int64_t>(first), got);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same(got[i], want[first + i]));
  }
}

TEST(Quantize, GivesTheBytesOfTheReferencePackage) {
  int n_types = 0;
  for (const Section& section : golden()) {
    if (!section.quantizes) continue;
    ++n_types;
    const std::vector<float> values = floats(section.given);
    std::string got(section.expected.size(), '\0');
    quantize(section.type, values, std::as_writable_bytes(std::span(got)));
    const auto bytes = static_cast<size_t>(block_bytes(section.type));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(static_cast<int>(got[i]), static_cast<int>(section.expected[i]))
          << to_string(section.type) << " block " << i / bytes << " byte " << i % bytes;
    }
  }
  EXPECT_EQ(n_types, 5);
}

TEST(Quantize, IsDefinedForWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {kInfinity, -kInfinity, kNan}) {
    for (const DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1}) {
      std::vector<float> values(32, 1.0f);
      values[7] = odd;
      std::vector<std::byte> block(static_cast<size_t>(block_bytes(type)));
      quantize(type, values, block);
      Tensor tensor;
      tensor.type = type;
      tensor.shape = {32};
      tensor.data = block;
      dequantize(tensor, 0, values);
      EXPECT_FALSE(std::isfinite(values[7])) << to_string(type) << " hides " << odd;
    }
  }
  std::vector<float> tiny(32, std::numeric_limits<float>::denorm_min());  // 1/d overflows
  for (const DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_1}) {
    std::vector<std::byte> block(static_cast<size_t>(block_bytes(type)));
    quantize(type, tiny, block);
    Tensor tensor;
    tensor.type = type;
    tensor.shape = {32};
    tensor.data = block;
    std::vector<float> values(32, 1.0f);
    dequantize(tensor, 0, values);
    for (const float value : values) EXPECT_EQ(value, 0.0f);
  }
}

TEST(Quantize, SixteenBitPatternsComeBackBitForBit) {
  std::vector<uint16_t> patterns(65536);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  for (const DType type : {DType::F16, DType::BF16}) {
    Tensor tensor;
    tensor.type = type;
    tensor.shape = {65536};
    tensor.data = std::as_bytes(std::span(patterns));
    std::vector<float> wide(65536);
    dequantize(tensor, 0, wide);
    std::vector<uint16_t> narrow(65536);
    quantize(type, wide, std::as_writable_bytes(std::span(narrow)));
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (std::isnan(wide[i])) {
        const uint16_t exponent = type == DType::F16 ? 0x7c00 : 0x7f80;
        EXPECT_GT(narrow[i] & 0x7fff, exponent) << to_string(type) << " " << i;
      } else {
        EXPECT_EQ(narrow[i], patterns[i]) << to_string(type);
      }
    }
  }
}

}  // namespace
}  // namespace paceline
