#include "io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string small_gguf(float value) {
  GgufBytes file(2, 2);
  file.text("general.architecture").put(8u).text("llama").key("a.count", 4, 7u);
  file.info("z", {2}, 0, 0).info("a", {1}, 0, 32).pad(32).floats({value, 2}).pad(32).floats({3});
  return file.bytes();
}

std::string small_safetensors(float value) {
  return safetensors_bytes(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                           {reinterpret_cast<const char*>(&value), 4});
}

// Points the cache at a folder of the test's own, and back.
class CacheFolder {
 public:
  explicit CacheFolder(const fs::path& folder) {
    if (const char* value = std::getenv("XDG_CACHE_HOME")) before_ = value;
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_) {
      setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      unsetenv("XDG_CACHE_HOME");
    }
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST(Checkpoint, OpensAGgufFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("mö del.gguf", small_gguf(1.5f));
  auto opened = Checkpoint::open(path);
  ASSERT_TRUE(opened) << opened.error().message;
  Checkpoint checkpoint = std::move(*opened);  // views stay good when it moves
  EXPECT_EQ(checkpoint.kind(), Checkpoint::Kind::Gguf);
  EXPECT_EQ(checkpoint.path(), path);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "z");  // file order
  ASSERT_NE(checkpoint.find("a"), nullptr);
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  float value = 0;
  dequantize(*checkpoint.find("a"), 0, std::span(&value, 1));
  EXPECT_EQ(value, 3.0f);
  ASSERT_NE(checkpoint.metadata(), nullptr);
  EXPECT_EQ(checkpoint.metadata()->text("general.architecture"), "llama");
  EXPECT_EQ(checkpoint.config_json(), "");
}

TEST(Checkpoint, OpensAFolder) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", small_safetensors(2.5f));
  folder.write("config.json", "{}");
  const auto opened = Checkpoint::open(folder.path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->kind(), Checkpoint::Kind::Safetensors);
  EXPECT_EQ(opened->metadata(), nullptr);
  EXPECT_EQ(opened->config_json(), "{}");
  EXPECT_EQ(opened->tensors().size(), 1u);
  EXPECT_TRUE(Checkpoint::open(folder.path() / ""));  // a slash at the end changes nothing
}

TEST(Checkpoint, RefusesWhatIsNoModel) {
  const TemporaryFolder folder;
  expect_refused(Checkpoint::open(folder.path() / "none.gguf"), ErrorCode::NotFound, {"none.gguf"});
  expect_refused(Checkpoint::open(""), ErrorCode::BadUsage, {".gguf file or a folder"});
  expect_refused(Checkpoint::open(folder.write("a.gguf/b", "") / "c"), ErrorCode::NotFound,
                 {"b/c"});
  expect_refused(Checkpoint::open(folder.write("n.txt", "hello")), ErrorCode::BadFormat,
                 {"n.txt", "GGUF"});
  expect_refused(Checkpoint::open(folder.write("e.gguf", "")), ErrorCode::BadFormat, {"e.gguf"});
  expect_refused(Checkpoint::open(folder.write("m.safetensors", small_safetensors(1))),
                 ErrorCode::BadUsage, {"m.safetensors", "folder"});
  const fs::path pipe = folder.path() / "pipe.gguf";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(Checkpoint::open(pipe), ErrorCode::BadFormat, {"not a regular file"});
  const fs::path broken = folder.path() / "line\nbreak.gguf";
  expect_refused(Checkpoint::open(broken), ErrorCode::NotFound, {"line\\x0abreak"});
}

// Files of 200 bytes that claim 4 or 40 GB: an error at once, without memory for the claim.
TEST(Checkpoint, TakesNoMemoryForClaims) {
  const TemporaryFolder folder;
  const auto peak_kib = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  GgufBytes gguf(0, 1);
  gguf.put(uint64_t{40'000'000'000}).zeros(168);
  GgufBytes array(0, 1);
  array.text("k").put(9u).put(4u).put(uint64_t{10'000'000'000}).zeros(100);
  GgufBytes tensor(1, 0);
  tensor.info("w", {256, int64_t{1} << 24}, 14, 0).pad(32);
  const fs::path tensor_file = folder.write("tensor.gguf", tensor.bytes());
  const fs::path key_file = folder.write("key.gguf", gguf.bytes());
  const fs::path array_file = folder.write("array.gguf", array.bytes());
  folder.write("model.safetensors", safetensors_bytes("{}", std::string(190, ' '), 40'000'000'000));
  const long before = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  expect_refused(Checkpoint::open(key_file), ErrorCode::BadFormat, {"40000000000"});
  expect_refused(Checkpoint::open(array_file), ErrorCode::BadFormat, {"10000000000"});
  expect_refused(Checkpoint::open(tensor_file), ErrorCode::BadFormat, {"'w'", "4294967296"});
  expect_refused(Checkpoint::open(folder.path()), ErrorCode::TooLarge, {"40000000000"});
  folder.write("model.safetensors", safetensors_bytes("{}", std::string(190, ' '), 4LL << 30));
  expect_refused(Checkpoint::open(folder.path()), ErrorCode::TooLarge, {"4294967296"});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 1.0);
  EXPECT_LT(peak_kib() - before, 100 * 1024);
}

TEST(Checkpoint, TellsAndRemembersTheDigestOfAGgufFile) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder.path() / "cache folder");
  const std::string bytes = small_gguf(1);
  const fs::path path = folder.write("m.gguf", bytes);
  const auto digest = [&] { return Checkpoint::open(path)->sha256().value_or("none"); };
  const std::string right = sha256(bytes_of(bytes));
  EXPECT_EQ(digest(), right);

  // One small record; what stands in it is believed as long as the file's state is the same.
  std::vector<fs::path> records;
  for (const auto& entry : fs::directory_iterator(folder.path() / "cache folder/paceline/sha256")) {
    records.push_back(entry.path());
  }
  ASSERT_EQ(records.size(), 1u);
  std::string record = read_whole(records[0]);
  const std::string other(64, 'a');
  ASSERT_NE(record.find(right), std::string::npos);
  record.replace(record.find(right), 64, other);
  std::ofstream(records[0]) << record;
  EXPECT_EQ(digest(), other);

  // Damaged records and other states of the file are not.
  for (const std::string& damaged : {std::string(), std::string("x"), record.substr(1),
                                     record.substr(0, record.size() - 10), std::string(500, 'a')}) {
    std::ofstream(records[0]) << damaged;
    EXPECT_EQ(digest(), right);
  }
  std::ofstream(records[0]) << record;
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1000));
  EXPECT_EQ(digest(), right);
  folder.write("m.gguf", small_gguf(2));
  EXPECT_EQ(digest(), sha256(bytes_of(small_gguf(2))));
}

TEST(Checkpoint, NeedsNoCacheFolder) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("m.gguf", small_gguf(1));
  const CacheFolder cache(folder.write("a file", "") / "below");
  EXPECT_EQ(Checkpoint::open(path)->sha256().value_or("none"), sha256(bytes_of(small_gguf(1))));
}

TEST(Checkpoint, DigestOfAFolderIsThatOfItsFilesDigests) {
  const TemporaryFolder folder;
  const CacheFolder cache(folder.path() / "cache");
  const auto renamed = [](std::string bytes, char name) {
    bytes.at(10) = name;
    return bytes;
  };
  const std::string one = small_safetensors(1);
  const std::string two = renamed(small_safetensors(2), 'v');
  folder.write("in/1.safetensors", one);
  folder.write("in/sub/2.safetensors", two);
  folder.write("in/model.safetensors.index.json",
               R"({"weight_map":{"w":"1.safetensors","v":"sub/2.safetensors"}})");
  const auto opened = Checkpoint::open(folder.path() / "in");
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string line_one = sha256(bytes_of(one)) + "  1.safetensors\n";
  const std::string line_two = sha256(bytes_of(two)) + "  sub/2.safetensors\n";
  const std::string lines = line_one < line_two ? line_one + line_two : line_two + line_one;
  EXPECT_EQ(opened->sha256().value_or("none"), sha256(bytes_of(lines)));

  // Other settings, another model.
  const std::string config = R"({"rope_theta": 1})";
  folder.write("in/config.json", config);
  std::vector<std::string> all = {line_one, line_two, sha256(bytes_of(config)) + "  config.json\n"};
  std::sort(all.begin(), all.end());
  EXPECT_EQ(Checkpoint::open(folder.path() / "in")->sha256().value_or("none"),
            sha256(bytes_of(all[0] + all[1] + all[2])));
}

}  // namespace
}  // namespace paceline
