#include "io/gguf_reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "io/test_files.h"

namespace paceline {
namespace {

constexpr uint32_t kU32 = 4;
constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;
constexpr uint32_t kTypeF32 = 0;
constexpr uint32_t kTypeQ4_1 = 3;  // NOLINT: the type's name
constexpr uint32_t kTypeQ4K = 12;
constexpr uint32_t kTypeQ8K = 15;

Result<GgufContents> read(const std::string& bytes) { return read_gguf(bytes_of(bytes), "x.gguf"); }
Result<GgufContents> read(const GgufBytes& file) { return read(file.bytes()); }

// One tensor 'w' of these dimensions (innermost first) without data.
GgufBytes one_tensor(const std::vector<int64_t>& ne, uint32_t type = kTypeF32) {
  GgufBytes file(1, 0);
  file.info("w", ne, type, 0).pad(32);
  return file;
}

TEST(GgufReader, ReadsVersionsTwoAndThree) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBytes file(2, 1, version);
    file.key("a.b", kU32, uint32_t{7});
    file.info("m", {3, 2}, kTypeF32, 0).info("v", {1}, kTypeF32, 32).pad(32);
    file.floats({1, 2, 3, 4, 5, 6}).pad(32).floats({9});
    const auto got = read(file);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->tensors.size(), 2u);
    EXPECT_EQ(got->tensors[0].name, "m");
    EXPECT_EQ(got->tensors[0].shape, (std::vector<int64_t>{2, 3}));  // outermost first
    std::vector<float> values(6);
    dequantize(got->tensors[0], 0, values);
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    values.resize(1);
    dequantize(got->tensors[1], 0, values);
    EXPECT_EQ(values[0], 9.0f);
    EXPECT_EQ(got->metadata.integer("a.b"), 7);
    EXPECT_TRUE(got->warnings.empty());
  }
}

TEST(GgufReader, ReadsMetadataWithoutLoss) {
  GgufBytes file(0, 16);
  file.key("u8", 0, uint8_t{200}).key("i8", 1, int8_t{-3}).key("u16", 2, uint16_t{65535});
  file.key("i16", 3, int16_t{-300}).key("u32", 4, uint32_t{4000000000});
  file.key("i32", 5, int32_t{-70000}).key("f32", 6, 0.1f).key("bool", 7, uint8_t{1});
  file.key("u64", 10, uint64_t{1} << 63).key("i64", 11, int64_t{-5000000000});
  file.key("f64", 12, 0.1).key("i64 beyond double", 11, (int64_t{1} << 53) + 1);
  file.text("text").put(kString).text("grüß\n");
  file.text("texts").put(kArray).put(kString).put(uint64_t{3}).text("a").text("").text("b c");
  file.text("i16s").put(kArray).put(3u).put(uint64_t{2}).put(int16_t{-1}).put(int16_t{2});
  file.text("f32s").put(kArray).put(6u).put(uint64_t{2}).put(0.5f).put(-2.0f);
  const auto got = read(file);
  ASSERT_TRUE(got) << got.error().message;
  const GgufMetadata& m = got->metadata;
  EXPECT_EQ(m.integer("u8"), 200);
  EXPECT_EQ(m.integer("i8"), -3);
  EXPECT_EQ(m.integer("u16"), 65535);
  EXPECT_EQ(m.integer("i16"), -300);
  EXPECT_EQ(m.integer("u32"), 4000000000);
  EXPECT_EQ(m.integer("i32"), -70000);
  EXPECT_EQ(m.integer("i64"), -5000000000);
  EXPECT_EQ(m.integer("bool"), 1);
  EXPECT_EQ(m.integer("u64"), std::nullopt);  // 2^63 is no int64
  EXPECT_EQ(m.integer("f32"), std::nullopt);
  EXPECT_EQ(m.integer("none"), std::nullopt);
  EXPECT_EQ(m.number("f32"), static_cast<double>(0.1f));
  EXPECT_EQ(m.number("f64"), 0.1);
  EXPECT_EQ(m.number("u32"), 4e9);
  EXPECT_EQ(m.number("i64 beyond double"), std::nullopt);
  EXPECT_EQ(m.boolean("bool"), true);
  EXPECT_EQ(m.boolean("u8"), std::nullopt);
  EXPECT_EQ(m.text("text"), "grüß\n");
  EXPECT_EQ(m.text("u8"), std::nullopt);
  EXPECT_EQ(m.texts("texts"), (std::vector<std::string_view>{"a", "", "b c"}));
  EXPECT_EQ(m.texts("text"), std::nullopt);
  EXPECT_EQ(m.integers("i16s"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(m.integers("f32s"), std::nullopt);
  EXPECT_EQ(m.integers("u8"), std::nullopt);
  EXPECT_EQ(m.numbers("f32s"), (std::vector<double>{0.5, -2.0}));
  EXPECT_EQ(m.numbers("i16s"), (std::vector<double>{-1, 2}));
  EXPECT_TRUE(m.has("f64"));
  EXPECT_FALSE(m.has("f6"));
}

TEST(GgufReader, RefusesWhatIsNoGgufOfOurVersions) {
  expect_refused(read(std::string()), ErrorCode::BadFormat, {"x.gguf", "'GGUF'"});
  expect_refused(read(std::string("GGU")), ErrorCode::BadFormat, {"'GGUF'"});
  expect_refused(read(std::string("ggml\3\0\0\0", 8)), ErrorCode::BadFormat, {"'GGUF'"});
  expect_refused(read(std::string("GGUF\3\0", 6)), ErrorCode::BadFormat, {"ends at byte 6"});
  expect_refused(read(GgufBytes(0, 0, 1)), ErrorCode::Unsupported, {"version 1"});
  expect_refused(read(GgufBytes(0, 0, 0)), ErrorCode::Unsupported, {"version 0"});
  expect_refused(read(GgufBytes(0, 0, 4)), ErrorCode::Unsupported, {"version 4"});
  expect_refused(read(GgufBytes(0, 0, 0x03000000)), ErrorCode::Unsupported,
                 {"big-endian", "0x03000000"});
}

TEST(GgufReader, BelievesNoCount) {
  for (const int64_t claim :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{-1},
        int64_t{1} << 40, int64_t{100}}) {
    GgufBytes tensors(claim, 0);
    expect_refused(read(tensors.zeros(100)), ErrorCode::BadFormat, {"tensors", "124 bytes"});
    GgufBytes keys(0, claim);
    expect_refused(read(keys.zeros(100)), ErrorCode::BadFormat, {"metadata keys", "124 bytes"});
  }
}

TEST(GgufReader, BelievesNoLength) {
  GgufBytes key(0, 1);  // 200 bytes that claim a key of 40 GB
  key.put(uint64_t{40'000'000'000}).zeros(168);
  expect_refused(read(key), ErrorCode::BadFormat, {"metadata key 0", "40000000000"});

  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1000}}) {
    GgufBytes text(0, 1);
    text.text("name").put(kString).put(length).zeros(10);
    expect_refused(read(text), ErrorCode::BadFormat, {"'name'", std::to_string(length)});
    for (const uint32_t type : {0u, 4u, 8u, 12u}) {
      GgufBytes array(0, 1);
      array.text("name").put(kArray).put(type).put(length).zeros(10);
      expect_refused(read(array), ErrorCode::BadFormat, {"'name'", std::to_string(length)});
    }
    GgufBytes name(1, 0);
    name.put(length).zeros(30);
    expect_refused(read(name), ErrorCode::BadFormat, {"name of tensor 0", std::to_string(length)});
  }
}

TEST(GgufReader, RefusesBadKeys) {
  GgufBytes empty(0, 1);
  expect_refused(read(empty.key("", kU32, 1u)), ErrorCode::BadFormat, {"key 0 is empty"});
  GgufBytes twice(0, 3);
  twice.key("k", kU32, 1u).key("b", kU32, 1u).key("k", kU32, 2u);
  expect_refused(read(twice), ErrorCode::BadFormat, {"'k'", "twice"});
  GgufBytes zero(0, 1);
  zero.key(std::string_view("a\0b", 3), kU32, 1u);
  expect_refused(read(zero), ErrorCode::BadFormat, {"'a\\x00b'", "zero byte"});
  GgufBytes too_long(0, 1);
  too_long.key(std::string(70'000, 'k'), kU32, 1u);
  expect_refused(read(too_long), ErrorCode::BadFormat, {"70000 bytes", "65535"});
  GgufBytes longest(0, 1);
  EXPECT_TRUE(read(longest.key(std::string(65'535, 'k'), kU32, 1u)));
  GgufBytes type(0, 1);
  expect_refused(read(type.key("k", 99, 1u)), ErrorCode::BadFormat, {"'k'", "type 99"});
  GgufBytes no_bool(0, 1);
  expect_refused(read(no_bool.key("k", 7, uint8_t{2})), ErrorCode::BadFormat, {"'k'", "bool"});
}

TEST(GgufReader, RefusesNestedArraysWithoutRecursion) {
  GgufBytes nested(0, 1);
  nested.text("deep").put(kArray);
  for (int i = 0; i < 10'000; ++i) nested.put(kArray).put(uint64_t{1});
  nested.put(0u).put(uint64_t{1}).put(uint8_t{1});
  expect_refused(read(nested), ErrorCode::Unsupported, {"'deep'", "array of arrays"});
}

TEST(GgufReader, ChecksDimensions) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  expect_refused(read(one_tensor({kMax, 2})), ErrorCode::BadFormat, {"'w'", "64 bits"});
  expect_refused(read(one_tensor({int64_t{1} << 32, int64_t{1} << 32})), ErrorCode::BadFormat,
                 {"'w'", "64 bits"});
  expect_refused(read(one_tensor({kMax})), ErrorCode::BadFormat, {"'w'", "can hold"});
  expect_refused(read(one_tensor({-1})), ErrorCode::BadFormat, {"'w'", "-1"});
  expect_refused(read(one_tensor({1, 1, 1, 1, 1})), ErrorCode::BadFormat, {"'w'", "5 dimensions"});
  GgufBytes many(1, 0);
  many.text("w").put(~uint32_t{0}).zeros(64);
  expect_refused(read(many), ErrorCode::BadFormat, {"'w'", "4294967295 dimensions"});
  expect_refused(read(one_tensor({48}, kTypeQ4_1)), ErrorCode::BadFormat,
                 {"'w'", "48", "Q4_1", "32"});
}

// Whatever the order: a zero first would hide that the others have no product.
TEST(GgufReader, CountsElementsWithoutTheirZeros) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  for (const std::vector<int64_t>& ne :
       {std::vector<int64_t>{0, kHuge, kHuge}, {kHuge, 0, kHuge}, {kHuge, kHuge, 0}})
    expect_refused(read(one_tensor(ne)), ErrorCode::BadFormat, {"'w'", "64 bits"});
  EXPECT_TRUE(read(one_tensor({0, kHuge})));
}

TEST(GgufReader, RefusesOtherTypesByName) {
  expect_refused(read(one_tensor({256}, kTypeQ8K)), ErrorCode::Unsupported, {"'w'", "Q8_K"});
  expect_refused(read(one_tensor({256}, 23)), ErrorCode::Unsupported, {"'w'", "IQ4_XS"});
  expect_refused(read(one_tensor({32}, 39)), ErrorCode::Unsupported, {"'w'", "MXFP4"});
  expect_refused(read(one_tensor({32}, 28)), ErrorCode::Unsupported, {"'w'", "F64"});
  expect_refused(read(one_tensor({32}, 4711)), ErrorCode::Unsupported, {"'w'", "type 4711"});
}

TEST(GgufReader, RefusesOverlapGapsAndMisalignment) {
  for (const uint64_t second :
       {uint64_t{0}, uint64_t{4}, uint64_t{31}, uint64_t{64}, ~uint64_t{0}, uint64_t{1} << 63}) {
    GgufBytes file(2, 0);
    file.info("a", {1}, kTypeF32, 0).info("b", {1}, kTypeF32, second).pad(32).zeros(200);
    expect_refused(read(file), ErrorCode::BadFormat, {"'b'", std::to_string(second), "32"});
  }
  GgufBytes late(1, 0);
  late.info("a", {1}, kTypeF32, 32).pad(32).zeros(200);
  expect_refused(read(late), ErrorCode::BadFormat, {"'a'", "offset 32"});
}

TEST(GgufReader, RefusesBadTensorNames) {
  GgufBytes twice(2, 0);
  twice.info("a", {1}, kTypeF32, 0).info("a", {1}, kTypeF32, 32).pad(32).zeros(36);
  expect_refused(read(twice), ErrorCode::BadFormat, {"'a'", "twice"});
  GgufBytes empty(1, 0);
  empty.info("", {1}, kTypeF32, 0).pad(32).zeros(4);
  expect_refused(read(empty), ErrorCode::BadFormat, {"empty name"});
  GgufBytes longest(1, 0);
  longest.info(std::string(63, 'n'), {1}, kTypeF32, 0).pad(32).zeros(4);
  EXPECT_TRUE(read(longest));
  GgufBytes too_long(1, 0);
  too_long.info(std::string(64, 'n'), {1}, kTypeF32, 0).pad(32).zeros(4);
  expect_refused(read(too_long), ErrorCode::BadFormat, {"64 bytes", "63"});
}

TEST(GgufReader, KnowsPaddingBehindTheLastTensor) {
  const auto file = [](size_t behind) {
    GgufBytes bytes(1, 0);
    bytes.info("a", {3}, kTypeF32, 0).pad(32).floats({1, 2, 3}).zeros(behind);
    return bytes;
  };
  for (const size_t behind : {0u, 20u}) {  // without, and up to the next multiple of 32
    const GgufBytes whole = file(behind);
    const auto got = read(whole);
    ASSERT_TRUE(got) << got.error().message;
    std::vector<float> values(3);
    dequantize(got->tensors[0], 0, values);
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
    EXPECT_TRUE(got->warnings.empty());
  }
  const auto more = read(file(120));
  ASSERT_TRUE(more);
  ASSERT_EQ(more->warnings.size(), 1u);
  EXPECT_NE(more->warnings[0].find("100 bytes"), std::string::npos);
  expect_refused(read(file(0).bytes().substr(0, file(0).bytes().size() - 1)), ErrorCode::BadFormat,
                 {"75 bytes", "'a' ends at byte 76", "cut short"});
}

TEST(GgufReader, KeepsAlignmentRules) {
  const auto file = [](uint32_t alignment, size_t laid_out) {
    GgufBytes bytes(2, 1);
    bytes.key("general.alignment", kU32, alignment);
    bytes.info("a", {1}, kTypeF32, 0).info("b", {1}, kTypeF32, laid_out);
    bytes.pad(laid_out).floats({1}).pad(laid_out).floats({2});
    return bytes;
  };
  for (const uint32_t alignment : {8u, 16u, 32u, 4096u}) {
    const GgufBytes whole = file(alignment, alignment);
    const auto got = read(whole);
    ASSERT_TRUE(got) << got.error().message;
    float value = 0;
    dequantize(got->tensors[1], 0, std::span(&value, 1));
    EXPECT_EQ(value, 2.0f) << alignment;
  }
  expect_refused(read(file(8, 32)), ErrorCode::BadFormat, {"'b'"});
  for (const uint32_t alignment : {0u, 1u, 3u, 4u, 24u}) {
    expect_refused(read(file(alignment, 32)), ErrorCode::BadFormat,
                   {"general.alignment is " + std::to_string(alignment), "power of two"});
  }
  expect_refused(read(file(1u << 31, 32)), ErrorCode::BadFormat, {});  // valid, but not laid out so
  GgufBytes wide(0, 1);
  expect_refused(read(wide.key("general.alignment", 10, uint64_t{32})), ErrorCode::BadFormat,
                 {"general.alignment"});
}

TEST(GgufReader, AllowsEmptyTensorsAndScalars) {
  GgufBytes file(3, 0);
  file.info("none", {0, 5}, kTypeF32, 0).info("scalar", {}, kTypeF32, 0);
  file.info("last", {0}, kTypeF32, 32).pad(32).floats({4});
  const auto got = read(file);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->tensors[0].elements(), 0);
  EXPECT_EQ(got->tensors[1].elements(), 1);
  EXPECT_TRUE(got->tensors[2].data.empty());
}

TEST(GgufReader, WantsWholeBlocksInEveryRow) {
  for (const auto& [type, name, length, bytes] : {std::tuple{6u, "Q5_0", 32, 22},
                                                  {7u, "Q5_1", 32, 24},
                                                  {10u, "Q2_K", 256, 84},
                                                  {11u, "Q3_K", 256, 110},
                                                  {kTypeQ4K, "Q4_K", 256, 144},
                                                  {13u, "Q5_K", 256, 176},
                                                  {14u, "Q6_K", 256, 210}}) {
    const int64_t row = length;
    // 576 is a width of real models: whole blocks of 32, no whole ones of 256.
    const int64_t odd = length == 32 ? 576 + 16 : 576;
    expect_refused(read(one_tensor({odd, 256}, type)), ErrorCode::BadFormat,
                   {"'w'", name, std::to_string(odd)});
    GgufBytes file = one_tensor({2 * row, 3}, type);
    const auto got = read(file.zeros(size_t{6} * static_cast<size_t>(bytes)));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_STREQ(to_string(got->tensors[0].type), name);
    EXPECT_EQ(got->tensors[0].data.size(), size_t{6} * static_cast<size_t>(bytes));
  }
}

TEST(GgufReader, ReadsThePlaceOfAPart) {
  const auto part = [](uint16_t number, uint16_t count) {
    GgufBytes file(0, 3);
    file.key("split.count", 2, count).key("split.no", 2, number);
    return file.key("split.tensors.count", 5, int32_t{7});
  };
  const auto got = read(part(2, 3));
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_TRUE(got->split);
  EXPECT_EQ(got->split->number, 2);
  EXPECT_EQ(got->split->count, 3);
  EXPECT_EQ(got->split->n_tensors, 7);
  EXPECT_FALSE(read(part(0, 1))->split);
  expect_refused(read(part(3, 3)), ErrorCode::BadFormat, {"split.no", "0 to 2", "3"});
  GgufBytes bare(0, 1);
  expect_refused(read(bare.key("split.count", 2, uint16_t{3})), ErrorCode::BadFormat,
                 {"split.no", "none"});
  GgufBytes many(0, 1);
  expect_refused(read(many.key("split.count", 10, uint64_t{1} << 40)), ErrorCode::BadFormat,
                 {"split.count", "65535"});
  GgufBytes few(0, 2);
  few.key("split.count", 2, uint16_t{2}).key("split.no", 2, uint16_t{0});
  expect_refused(read(few), ErrorCode::BadFormat, {"split.tensors.count"});
}

TEST(GgufReader, EveryCutOfAFileIsAnError) {
  GgufBytes file(1, 3);
  file.key("a", kU32, 1u).text("t").put(kString).text("xyz");
  file.text("l").put(kArray).put(kString).put(uint64_t{2}).text("p").text("q");
  file.info("w", {5}, kTypeF32, 0).pad(32).floats({1, 2, 3, 4, 5});
  ASSERT_TRUE(read(file));
  for (size_t size = 0; size < file.bytes().size(); ++size) {
    EXPECT_FALSE(read(file.bytes().substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace paceline
