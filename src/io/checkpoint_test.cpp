#include "io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
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
  const auto digest = [&] { return Checkpoint::open(path)->trunk_sha256(); };
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
  EXPECT_EQ(Checkpoint::open(path)->trunk_sha256(), sha256(bytes_of(small_gguf(1))));
}

// A folder of float32 vectors: what lies in which file is the test's to choose.
class TrunkFolder {
 public:
  using Vectors = std::vector<std::pair<std::string, std::vector<float>>>;

  // In the order given, with an index where there are several files.
  void write(const std::vector<std::pair<std::string, Vectors>>& files) {
    fs::remove_all(folder_.path() / "in");
    std::string weight_map;
    for (const auto& [file, vectors] : files) {
      std::string header, data;
      for (const auto& [name, values] : vectors) {
        const size_t begin = data.size();
        data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
        header += std::string(header.empty() ? "" : ",") + "\"" + name +
                  R"(":{"dtype":"F32","shape":[)" + std::to_string(values.size()) +
                  R"(],"data_offsets":[)" + std::to_string(begin) + "," +
                  std::to_string(data.size()) + "]}";
        weight_map += (weight_map.empty() ? "\"" : ",\"") + name + "\":\"" + file + "\"";
      }
      folder_.write("in/" + file, safetensors_bytes("{" + header + "}", data));
    }
    if (files.size() > 1)
      folder_.write("in/model.safetensors.index.json", R"({"weight_map":{)" + weight_map + "}}");
    folder_.write("in/config.json", "{}");
  }
  fs::path write(const std::string& name, const std::string& text) {
    return folder_.write("in/" + name, text);
  }
  std::string digest() const {
    const auto opened = Checkpoint::open(folder_.path() / "in");
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? opened->trunk_sha256() : "none";
  }
  fs::path path() const { return folder_.path() / "in"; }
  fs::path cache() const { return folder_.path() / "cache"; }

 private:
  TemporaryFolder folder_;
  CacheFolder cache_folder_{folder_.path() / "cache"};
};

const TrunkFolder::Vectors kTrunk = {{"b", {1, 2}}, {"a", {3}}};

TEST(Checkpoint, TheDigestOfAFolderIsThatOfItsTensorsByNameAndItsSettings) {
  TrunkFolder folder;
  folder.write({{"model.safetensors", kTrunk}});
  const float values[] = {3, 1, 2};
  const std::string bytes(reinterpret_cast<const char*>(values), sizeof(values));
  const std::string tensors =
      "1 a F32 1 4\n" + bytes.substr(0, 4) + "1 b F32 2 8\n" + bytes.substr(4);
  const std::string lines =
      sha256(bytes_of(tensors)) + "  tensors\n" + sha256(bytes_of("{}")) + "  config.json\n";
  EXPECT_EQ(folder.digest(), sha256(bytes_of(lines)));
}

TEST(Checkpoint, FilesAndHeadsAreNoPartOfATrunksDigest) {
  TrunkFolder folder;
  folder.write({{"model.safetensors", kTrunk}});
  const std::string alone = folder.digest();
  const TrunkFolder::Vectors head = {{"mtp.fc.weight", {7, 8}}, {"mtp.norm.weight", {9}}};
  const TrunkFolder::Vectors other = {{"mtp.fc.weight", {7, 9}}};
  folder.write({{"model.safetensors", kTrunk}, {"mtp.safetensors", head}});
  EXPECT_EQ(folder.digest(), alone);
  folder.write({{"model.safetensors", kTrunk}, {"mtp.safetensors", other}});
  EXPECT_EQ(folder.digest(), alone);
  folder.write({{"model.safetensors", {kTrunk[1], head[0], kTrunk[0], head[1]}}});
  EXPECT_EQ(folder.digest(), alone);
  folder.write({{"1.safetensors", {head[0], kTrunk[0]}}, {"2.safetensors", {kTrunk[1]}}});
  EXPECT_EQ(folder.digest(), alone);
  folder.write({{"2.safetensors", {kTrunk[0], kTrunk[1]}}, {"3.safetensors", {head[0]}}});
  EXPECT_EQ(folder.digest(), alone);
}

TEST(Checkpoint, WhatATrunkComputesWithIsPartOfItsDigest) {
  TrunkFolder folder;
  folder.write({{"model.safetensors", kTrunk}});
  std::vector<std::string> digests = {folder.digest()};
  const std::vector<TrunkFolder::Vectors> others = {
      {{"b", {1, 2.0000002f}}, {"a", {3}}},      // one bit of a value
      {{"b", {1, 2}}, {"c", {3}}},               // a name
      {{"b", {1}}, {"a", {3}}, {"b2", {2}}},     // the same bytes, cut otherwise
      {{"b", {1, 2}}, {"a", {3}}, {"mt", {9}}},  // more, and no head
      {{"b", {1, 2}}},
      {{"a", {1, 2}}, {"b", {3}}}};
  for (const TrunkFolder::Vectors& vectors : others) {
    folder.write({{"model.safetensors", vectors}});
    digests.push_back(folder.digest());
  }
  folder.write({{"model.safetensors", kTrunk}});
  folder.write("config.json", R"({"rope_theta": 1})");
  digests.push_back(folder.digest());
  fs::remove(folder.path() / "config.json");
  digests.push_back(folder.digest());
  // Half as many values of twice the bytes' width, and the same bytes.
  std::string file = read_whole(folder.path() / "model.safetensors");
  file.replace(file.find("F32"), 3, "F16").replace(file.find("[2]"), 3, "[4]");
  folder.write("model.safetensors", file);
  digests.push_back(folder.digest());
  std::ranges::sort(digests);
  EXPECT_EQ(std::ranges::unique(digests).size(), 0u);
}

TEST(Checkpoint, TheDigestOfAFolderIsRememberedForTheStateOfItsTrunk) {
  TrunkFolder folder;
  folder.write({{"model.safetensors", kTrunk}, {"mtp.safetensors", {{"mtp.fc.weight", {7}}}}});
  const std::string right = folder.digest();
  const fs::path record = fs::directory_iterator(folder.cache() / "paceline/trunk")->path();
  std::string text = read_whole(record);
  text.replace(text.find(' ') + 1, 64, std::string(64, 'a'));
  const auto forge = [&] { std::ofstream(record) << text; };
  forge();
  const std::string believed = folder.digest();
  EXPECT_NE(believed, right);

  folder.write("mtp.safetensors", read_whole(folder.path() / "mtp.safetensors"));
  EXPECT_EQ(folder.digest(), believed);  // a head that is written anew changes nothing
  // The same file in another state; the same file, of which the index takes less.
  fs::last_write_time(folder.path() / "model.safetensors",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(folder.digest(), right);
  forge();
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"model.safetensors","mtp.fc.weight":"mtp.safetensors"}})");
  const std::string less = folder.digest();
  EXPECT_NE(less, right);
  EXPECT_NE(less, believed);
}

}  // namespace
}  // namespace paceline
