#include "io/gguf_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "io/checkpoint.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Part `number` (from 0) of `count`, with one tensor; the first has the model's key too.
std::string part(int number, int count, const std::string& tensor, float value,
                 int n_tensors = -1) {
  GgufBytes file(1, number == 0 ? 4 : 3);
  if (number == 0) file.text("general.architecture").put(8u).text("llama");
  file.key("split.no", 2, static_cast<uint16_t>(number));
  file.key("split.count", 2, static_cast<uint16_t>(count));
  file.key("split.tensors.count", 5, int32_t{n_tensors < 0 ? count : n_tensors});
  return file.info(tensor, {1}, 0, 0).pad(32).floats({value}).bytes();
}

float value_of(const Checkpoint& checkpoint, std::string_view name) {
  float value = 0;
  dequantize(*checkpoint.find(name), 0, std::span(&value, 1));
  return value;
}

void write_three(const TemporaryFolder& folder) {
  folder.write("m-00001-of-00003.gguf", part(0, 3, "a", 1));
  folder.write("m-00002-of-00003.gguf", part(1, 3, "b", 2));
  folder.write("m-00003-of-00003.gguf", part(2, 3, "c", 3));
}

TEST(SplitGguf, AnyPartOpensAll) {
  const TemporaryFolder folder;
  write_three(folder);
  std::string digest;
  for (const char* name :
       {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    const auto got = Checkpoint::open(folder.path() / name);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->tensors().size(), 3u);
    EXPECT_EQ(got->tensors()[1].name, "b");  // part by part, whichever was named
    EXPECT_EQ(value_of(*got, "a"), 1.0f);
    EXPECT_EQ(value_of(*got, "b"), 2.0f);
    EXPECT_EQ(value_of(*got, "c"), 3.0f);
    EXPECT_EQ(got->metadata()->text("general.architecture"), "llama");
    const auto sha256 = got->trunk_sha256();
    if (digest.empty()) digest = sha256;
    EXPECT_EQ(sha256, digest);
  }
}

TEST(SplitGguf, ListsMissingParts) {
  const TemporaryFolder folder;
  folder.write("m-00002-of-00003.gguf", part(1, 3, "b", 2));
  fs::create_directory(folder.path() / "m-00001-of-00003.gguf");  // no file of that name
  expect_refused(Checkpoint::open(folder.path() / "m-00002-of-00003.gguf"), ErrorCode::NotFound,
                 {"2 of the 3", "'m-00001-of-00003.gguf'", "'m-00003-of-00003.gguf'"});
}

TEST(SplitGguf, WantsANameThatSaysItsPlace) {
  for (const char* name : {"m.gguf", "m-00001-of-00002.gguf", "m-00002-of-00003.gguf",
                           "m-0001-of-0003.gguf", "m-00001-of-00003.gguf.gguf"}) {
    const TemporaryFolder folder;
    expect_refused(Checkpoint::open(folder.write(name, part(0, 3, "a", 1))), ErrorCode::BadFormat,
                   {"part 1 of 3", "-00001-of-00003.gguf"});
  }
  const TemporaryFolder folder;  // and a whole model may be called as it likes
  EXPECT_TRUE(Checkpoint::open(folder.write("m-00001-of-00003.gguf", part(0, 1, "a", 1))));
}

TEST(SplitGguf, RefusesPartsOfAnotherSet) {
  const auto with_second = [](const std::string& bytes, std::vector<std::string> words) {
    const TemporaryFolder folder;
    write_three(folder);
    folder.write("m-00002-of-00003.gguf", bytes);
    words.emplace_back("m-00002-of-00003.gguf");
    expect_refused(Checkpoint::open(folder.path() / "m-00001-of-00003.gguf"), ErrorCode::BadFormat,
                   words);
  };
  with_second(part(1, 4, "b", 2, 3), {"part 2 of 4", "part 2 of 3 "});
  with_second(part(2, 3, "b", 2), {"part 3 of 3", "part 2 of 3 "});
  with_second(part(1, 3, "b", 2, 9), {"9 tensors"});
  with_second(GgufBytes(0, 0).bytes(), {"no split.count"});
  with_second(part(1, 3, "b", 2).substr(0, 150), {"cut short"});
}

TEST(SplitGguf, CountsTensorsOverAllParts) {
  const TemporaryFolder folder;
  const fs::path first = folder.write("m-00001-of-00002.gguf", part(0, 2, "a", 1, 3));
  folder.write("m-00002-of-00002.gguf", part(1, 2, "b", 2, 3));
  expect_refused(Checkpoint::open(first), ErrorCode::BadFormat, {"2 tensors", "says 3"});
  folder.write("m-00001-of-00002.gguf", part(0, 2, "a", 1));
  folder.write("m-00002-of-00002.gguf", part(1, 2, "a", 2));
  expect_refused(Checkpoint::open(first), ErrorCode::BadFormat, {"'a'", "two parts"});
}

}  // namespace
}  // namespace paceline
