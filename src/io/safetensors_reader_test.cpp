#include "io/safetensors_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "io/test_files.h"

namespace paceline {
namespace {

Result<SafetensorsContents> read(const std::string& bytes) {
  return read_safetensors(bytes_of(bytes), "x.safetensors");
}
Result<SafetensorsContents> read(std::string_view header, std::string_view data) {
  return read(safetensors_bytes(header, data));
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, dtype,
                     shape, offsets);
}
std::string object(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return object({entry("w", dtype, shape, offsets)});
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(SafetensorsReader, ReadsTensorsByOffset) {
  const std::string header =
      object({entry("b", "F32", "2,1", "2,10"), entry("a", "BF16", "1", "0,2")}) + "   ";
  const std::string data = std::string("\x80\x3f", 2) + floats({2, 3});
  const std::string bytes = safetensors_bytes(header, data);
  const auto got = read(bytes);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->tensors.size(), 2u);
  EXPECT_EQ(got->tensors[0].name, "a");
  EXPECT_EQ(got->tensors[0].type, DType::BF16);
  EXPECT_EQ(got->tensors[1].shape, (std::vector<int64_t>{2, 1}));
  std::vector<float> values(2);
  dequantize(got->tensors[1], 0, values);  // not aligned in the file
  EXPECT_EQ(values, (std::vector<float>{2, 3}));
  dequantize(got->tensors[0], 0, std::span(values).first(1));
  EXPECT_EQ(values[0], 1.0f);
}

TEST(SafetensorsReader, RefusesHeaderLengthsThatCannotBe) {
  const std::string header = one("F32", "1", "0,4");
  const auto claimed = [&](uint64_t length) {
    return read(safetensors_bytes(header, "abcd", static_cast<int64_t>(length)));
  };
  expect_refused(read(std::string()), ErrorCode::BadFormat, {"x.safetensors", "0 bytes"});
  expect_refused(read(std::string("1234")), ErrorCode::BadFormat, {"4 bytes"});
  expect_refused(claimed(0), ErrorCode::BadFormat, {"0 bytes"});
  expect_refused(claimed(1), ErrorCode::BadFormat, {"JSON"});
  const uint64_t size = 8 + header.size() + 4;
  expect_refused(claimed(size + 1), ErrorCode::BadFormat,
                 {std::to_string(size) + " bytes", std::to_string(size + 9)});
  std::string huge = safetensors_bytes(header, "abcd");
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{40'000'000'000}}) {
    huge.replace(0, 8, reinterpret_cast<const char*>(&length), 8);
    expect_refused(read(huge), ErrorCode::TooLarge, {std::to_string(length), "100000000"});
  }
}

TEST(SafetensorsReader, RefusesHeadersThatAreNoObjectOfEntries) {
  const auto refused = [](std::string_view header, const std::vector<std::string>& words) {
    expect_refused(read(header, ""), ErrorCode::BadFormat, words);
  };
  refused("[1,2]", {"JSON object"});
  refused("12345", {"JSON object"});
  refused(R"( {"a":1})", {"JSON object"});
  refused(R"({"w":{"dtype":"F32","sha)", {"JSON"});
  refused("{\"a\xff\":1}", {"JSON"});
  refused(std::string_view("{}\0", 3), {"JSON"});
  refused("{} x", {"JSON"});
  refused(R"({"w":3})", {"'w'", "number"});
  refused(R"({"w":null})", {"'w'", "null"});
  refused(R"({"w":[]})", {"'w'", "array"});
  refused(R"({"":{}})", {"empty name"});
  refused(R"({"w":{}})", {"'w'", "no dtype"});
  refused(R"({"w":{"dtype":"F32","shape":[]}})", {"'w'", "no data_offsets"});
  refused(R"({"w":{"dtype":"F32","strides":[1]}})", {"'w'", "'strides'"});
  refused(R"({"w":{"dtype":7}})", {"'w'", "dtype"});
  refused(R"({"w":{"dtype":["F32"]}})", {"'w'", "dtype", "array"});
  refused(R"({"w":{"shape":"1"}})", {"'w'", "shape"});
  refused(R"({"w":{"shape":[[1]]}})", {"'w'", "shape", "array"});
  refused(R"({"w":{"shape":[1.5]}})", {"'w'", "shape"});
  refused(R"({"w":{"data_offsets":[0]}})", {"'w'", "data_offsets"});
  refused(R"({"w":{"data_offsets":[0,1,2]}})", {"'w'", "data_offsets"});
  refused(R"({"w":{"data_offsets":{}}})", {"'w'", "data_offsets"});
  refused(fmt::format("{{{}", std::string(100'000, '[')), {"JSON"});
  refused(R"({"w":)" + std::string(100'000, '['), {"'w'"});
  refused(R"({"w":{"shape":)" + std::string(100'000, '['), {"'w'"});
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  refused(objects, {"'a'"});
}

TEST(SafetensorsReader, ChecksShapesAndOffsets) {
  const auto refused = [](std::string_view dtype, std::string_view shape, std::string_view offsets,
                          const std::vector<std::string>& words) {
    expect_refused(read(one(dtype, shape, offsets), "abcdefgh"), ErrorCode::BadFormat, words);
  };
  refused("F32", "2", "8,0", {"'w'", "[8, 0]"});
  refused("F32", "2", "-8,0", {"'w'", "negative"});
  refused("F32", "4", "0,16", {"'w'", "cut short"});
  refused("F32", "2", "9223372036854775808,9223372036854775816", {"'w'"});
  refused("F32", "2", "18446744073709551607,18446744073709551615", {"'w'"});
  refused("F32", "2", "0,18446744073709551616", {"'w'", "data_offsets"});
  refused("F32", "4294967296,4294967296", "0,8", {"'w'", "64 bits"});
  refused("F32", "9223372036854775807,0", "0,8", {"'w'", "64 bits"});
  refused("F32", "9223372036854775808", "0,8", {"'w'", "9223372036854775808"});
  refused("F32", "-1", "0,8", {"'w'", "negative"});
  refused("F32", "1", "0,8", {"'w'", "8 bytes", "ask for 4"});
  refused("F32", "3", "0,8", {"'w'", "8 bytes", "ask for 12"});
  refused("F32", "1,1,1,1,1,1,1,1,2", "0,8", {"'w'", "8 dimensions"});
  refused("F32", "1", "0,4", {"4 bytes follow"});
  refused("F32", "1", "4,8", {"'w'", "data byte 4", "0 was expected"});
}

TEST(SafetensorsReader, RefusesOverlapAndHoles) {
  const std::string a = entry("a", "F32", "1", "0,4");
  const auto with = [&](std::string_view offsets, std::string_view data) {
    return read(object({a, entry("b", "F32", "1", offsets)}), data);
  };
  EXPECT_TRUE(with("4,8", "abcdefgh"));
  expect_refused(with("0,4", "abcd"), ErrorCode::BadFormat, {"'b'", "overlap"});
  expect_refused(with("2,6", "abcdef"), ErrorCode::BadFormat, {"'b'", "overlap"});
  expect_refused(with("6,10", "abcdefghij"), ErrorCode::BadFormat, {"'b'", "holes"});
}

TEST(SafetensorsReader, SeesEveryKeyThatComesTwice) {
  const std::string a = entry("a", "F32", "1", "0,4");
  expect_refused(read(object({a, entry("b", "F32", "0", "4,4"), a}), "abcd"), ErrorCode::BadFormat,
                 {"'a'", "twice"});
  expect_refused(
      read(R"({"w":{"dtype":"F32","shape":[1],"dtype":"F16","data_offsets":[0,4]}})", "abcd"),
      ErrorCode::BadFormat, {"'w'", "dtype twice"});
  expect_refused(read(R"({"__metadata__":{"k":"1","k":"2"}})", ""), ErrorCode::BadFormat,
                 {"'k'", "twice"});
  expect_refused(read(R"({"__metadata__":{},"__metadata__":{}})", ""), ErrorCode::BadFormat,
                 {"__metadata__", "twice"});
}

TEST(SafetensorsReader, RefusesOtherDtypesByName) {
  for (const char* dtype : {"F64",     "I64", "I32",  "I16",     "I8",      "U64",     "U32",
                            "U16",     "U8",  "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3",
                            "F6_E3M2", "F4",  "C64",  "f32",     "",        "GIRAFFE"}) {
    expect_refused(read(one(dtype, "", "0,4"), "abcd"), ErrorCode::Unsupported,
                   {"'w'", fmt::format("dtype '{}'", dtype)});
  }
  EXPECT_TRUE(read(one("F32", "", "0,4"), "abcd"));
  EXPECT_TRUE(read(one("F16", "2", "0,4"), "abcd"));
  EXPECT_TRUE(read(one("BF16", "1,2", "0,4"), "abcd"));
}

TEST(SafetensorsReader, ReadsMetadataOfStringsAlone) {
  const std::string a = entry("a", "F32", "1", "0,4");
  const auto with = [&](std::string_view metadata) {
    return read(fmt::format(R"({{"__metadata__":{},{}}})", metadata, a), "abcd");
  };
  EXPECT_TRUE(with("{}"));
  EXPECT_TRUE(with("null"));  // as MLX writes it
  const auto got = with(R"({"b":"2","a":"1"})");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->metadata,
            (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "2"}}));
  const std::vector<std::string> words = {"__metadata__", "strings"};
  expect_refused(with(R"({"a":1})"), ErrorCode::BadFormat, words);
  expect_refused(with(R"({"a":null})"), ErrorCode::BadFormat, words);
  expect_refused(with(R"({"a":{"b":"c"}})"), ErrorCode::BadFormat, words);
  expect_refused(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), ErrorCode::BadFormat,
                 words);
  expect_refused(with("7"), ErrorCode::BadFormat, words);
  expect_refused(with("[]"), ErrorCode::BadFormat, words);
}

TEST(SafetensorsReader, ReadsScalarsAndEmptyTensors) {
  const auto got = read(object({entry("s", "F32", "", "0,4"), entry("e", "F32", "0", "4,4"),
                                entry("f", "BF16", "3,0", "0,0")}),
                        "abcd");
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->tensors.size(), 3u);
  EXPECT_EQ(got->tensors[0].name, "f");
  EXPECT_EQ(got->tensors[1].elements(), 1);
  EXPECT_EQ(got->tensors[2].elements(), 0);
  const auto none = read(R"({"__metadata__":{"a":"b"}})", "");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->tensors.empty());
}

TEST(SafetensorsReader, KeepsErrorSentencesShortAndOnOneLine) {
  const std::string name = "line\\nbreak" + std::string(100'000, 'n');
  const auto got = read(object({entry(name, "F32", "1", "0,9")}), "abcdefghi");
  expect_refused(got, ErrorCode::BadFormat, {"line\\x0abreak"});
  EXPECT_LT(got.error().message.size(), 300u);
}

// Headers up to the limit load, in time that grows with their size; beyond it the limit is told.
TEST(SafetensorsReader, ReadsLongHeaders) {
  const auto long_header = [](size_t size) {  // entries in the first fifth, then spaces
    std::string header = "{";
    size_t i = 0;
    while (header.size() < size / 5) {
      header += entry(fmt::format("model.layers.{}.weight", i), "F32", "1",
                      fmt::format("{},{}", 4 * i, 4 * i + 4)) +
                ",";
      ++i;
    }
    header.back() = '}';
    header.resize(size, ' ');
    return safetensors_bytes(header, std::string(4 * i, '\0'));
  };
  EXPECT_TRUE(read(long_header(1'000'000)));
  const std::string whole = long_header(99'000'000);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(read(whole));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 60.0);  // half a second here; a quadratic parser would take hours
  for (const size_t size : {size_t{101'000'000}, size_t{126'000'000}}) {
    expect_refused(read(safetensors_bytes("{}" + std::string(size - 2, ' '), "")),
                   ErrorCode::TooLarge, {std::to_string(size), "100000000"});
  }
}

}  // namespace
}  // namespace paceline
