#include "io/folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "io/safetensors_index.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

// A file of scalar float32 tensors, each with this value.
std::string shard(const std::vector<std::string>& names, float value = 1.0f) {
  std::string header = "{";
  std::string data;
  for (const std::string& name : names) {
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", name, data.size(), data.size() + 4);
    data.append(reinterpret_cast<const char*>(&value), 4);
  }
  return safetensors_bytes(header + "}", data);
}

std::string index(const std::vector<std::pair<std::string, std::string>>& map) {
  std::string text = R"({"metadata":{"total_size":[1,{"a":null}]},"weight_map":{)";
  for (const auto& [tensor, file] : map) {
    text += fmt::format(R"({}"{}":"{}")", text.ends_with('{') ? "" : ",", tensor, file);
  }
  return text + "}}";
}

// Three shards with two tensors each, and their index.
void write_three_shards(const TemporaryFolder& folder) {
  folder.write("m1.safetensors", shard({"a", "b"}));
  folder.write("m2.safetensors", shard({"c", "d"}));
  folder.write("m3.safetensors", shard({"e", "f"}));
  folder.write(kIndex, index({{"a", "m1.safetensors"},
                              {"b", "m1.safetensors"},
                              {"c", "m2.safetensors"},
                              {"d", "m2.safetensors"},
                              {"e", "m3.safetensors"},
                              {"f", "m3.safetensors"}}));
}

float value_of(const Folder& folder, std::string_view name) {
  float value = 0;
  for (const Tensor& tensor : folder.tensors) {
    if (tensor.name == name) dequantize(tensor, 0, std::span(&value, 1));
  }
  return value;
}

TEST(Folder, ReadsASingleFileAndTheTextsBesideIt) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", shard({"w"}, 5.0f));
  folder.write("config.json", "{\"a\": 1}\n");
  folder.write("tokenizer.json", "{}");
  folder.write("chat_template.jinja", "{{ x }}");
  const auto got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "w"), 5.0f);
  EXPECT_EQ(got->config_json, "{\"a\": 1}\n");
  EXPECT_EQ(got->tokenizer_json, "{}");
  EXPECT_EQ(got->chat_template_jinja, "{{ x }}");
  EXPECT_EQ(got->generation_config_json, "");
  EXPECT_EQ(got->tokenizer_config_json, "");
  EXPECT_TRUE(got->warnings.empty());
}

TEST(Folder, ReadsShardsInSubfoldersToo) {
  const TemporaryFolder folder;
  write_three_shards(folder);
  auto got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->tensors.size(), 6u);
  EXPECT_EQ(got->files.size(), 3u);
  EXPECT_TRUE(got->warnings.empty());

  folder.write("sub/ölf 1.safetensors", shard({"x"}, 3.0f));
  folder.write(kIndex, index({{"x", "sub/ölf 1.safetensors"}}));
  got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "x"), 3.0f);
  ASSERT_EQ(got->warnings.size(), 1u);  // the three others, no longer named
  EXPECT_NE(got->warnings[0].find("m2.safetensors"), std::string::npos);
}

TEST(Folder, SaysWhatIsCutAndWhereItShouldEnd) {
  const TemporaryFolder folder;
  write_three_shards(folder);
  const std::string whole = shard({"c", "d"});
  for (const size_t size :
       {size_t{0}, size_t{4}, size_t{8}, size_t{40}, whole.size() - 8, whole.size() - 1}) {
    folder.write("m2.safetensors", whole.substr(0, size));
    expect_refused(open_folder(folder.path()), ErrorCode::BadFormat,
                   {"m2.safetensors", fmt::format("{} bytes", size), "byte"});
  }
  folder.write("m2.safetensors", whole.substr(0, whole.size() - 1));
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat,
                 {fmt::format("has {} bytes", whole.size() - 1),
                  fmt::format("ends at byte {}", whole.size())});
}

TEST(Folder, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"", "/absolute/x", "../x.safetensors", "a/../../x", "a/..", "..", ".",
                           "./x", "a//x", "a/", "C:\\x", "c:x", "a\\x"}) {
    EXPECT_TRUE(leaves_folder(name)) << name;
  }
  EXPECT_TRUE(leaves_folder(std::string_view("a\0b", 3)));
  for (const char* name : {"x", "x.safetensors", "a/x", "..x", "a..b/c..", "模型.safetensors"}) {
    EXPECT_FALSE(leaves_folder(name)) << name;
  }

  const TemporaryFolder folder;
  // Were one of them opened, the pipe would block for good.
  ASSERT_EQ(mkfifo((folder.path() / "pipe.safetensors").c_str(), 0600), 0);
  fs::create_directory(folder.path() / "in");
  for (const char* name :
       {"../pipe.safetensors", "", "/pipe.safetensors", "C:\\\\x", "a\\u0000b"}) {
    folder.write(std::string("in/") + kIndex, index({{"w", name}}));
    expect_refused(open_folder(folder.path() / "in"), ErrorCode::BadFormat,
                   {kIndex, "'w'", "plain name"});
  }
}

TEST(Folder, RefusesLinksThatLeaveTheFolder) {
  const TemporaryFolder folder;
  folder.write("outside.safetensors", shard({"w"}, 2.0f));
  folder.write("in/real.safetensors", shard({"w"}, 3.0f));
  const fs::path in = folder.path() / "in";
  folder.write(std::string("in/") + kIndex, index({{"w", "link.safetensors"}}));
  const fs::path link = in / "link.safetensors";

  fs::create_symlink("../outside.safetensors", link);
  expect_refused(open_folder(in), ErrorCode::BadFormat, {"link.safetensors", "leaves the folder"});
  fs::remove(link);
  fs::create_symlink("../not there", link);
  expect_refused(open_folder(in), ErrorCode::NotFound, {"link.safetensors", "missing"});
  fs::remove(link);
  fs::create_symlink("real.safetensors", link);
  const auto got = open_folder(in);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "w"), 3.0f);

  fs::create_directory_symlink("..", in / "up");
  folder.write(std::string("in/") + kIndex, index({{"w", "up/outside.safetensors"}}));
  expect_refused(open_folder(in), ErrorCode::BadFormat, {"leaves the folder"});
}

TEST(Folder, FollowsTheLinksOfAHubCache) {
  const TemporaryFolder folder;
  folder.write("blobs/0123", shard({"w"}, 4.0f));
  folder.write("elsewhere/0123", shard({"w"}, 4.0f));
  folder.write(std::string("snapshots/rev/") + kIndex, index({{"w", "m.safetensors"}}));
  const fs::path snapshot = folder.path() / "snapshots" / "rev";
  fs::create_symlink("../../blobs/0123", snapshot / "m.safetensors");
  const auto got = open_folder(snapshot);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "w"), 4.0f);
  fs::remove(snapshot / "m.safetensors");
  fs::create_symlink("../../elsewhere/0123", snapshot / "m.safetensors");
  expect_refused(open_folder(snapshot), ErrorCode::BadFormat, {"leaves the folder"});
}

TEST(Folder, ListsAllMissingShards) {
  const TemporaryFolder folder;
  write_three_shards(folder);
  fs::remove(folder.path() / "m2.safetensors");
  expect_refused(open_folder(folder.path()), ErrorCode::NotFound,
                 {"1 of 3", "'m2.safetensors' (2 tensors)"});
  fs::create_directory(folder.path() / "m2.safetensors");
  fs::remove(folder.path() / "m3.safetensors");
  expect_refused(open_folder(folder.path()), ErrorCode::NotFound,
                 {"2 of 3", "'m2.safetensors' (2 tensors)", "'m3.safetensors' (2 tensors)"});
}

TEST(Folder, ListsTensorsThatAShardDoesNotHold) {
  const TemporaryFolder folder;
  write_three_shards(folder);
  folder.write("m2.safetensors", safetensors_bytes(R"({"__metadata__":{"format":"pt"}})", ""));
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat,
                 {"2 tensors", "'c' in 'm2.safetensors'", "'d'"});
}

TEST(Folder, RefusesASingleFileWithoutTensors) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_bytes(R"({"__metadata__":{"format":"pt"}})", ""));
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat,
                 {"model.safetensors", "no tensors"});
}

TEST(Folder, LetsTheIndexDecideBetweenTwoShards) {
  for (const bool first_made_first : {true, false}) {
    const TemporaryFolder folder;
    const auto make = [&](const char* name, float value) {
      folder.write(name, shard({"w"}, value));
    };
    if (first_made_first) make("1.safetensors", 1.0f);
    make("2.safetensors", 2.0f);
    if (!first_made_first) make("1.safetensors", 1.0f);
    folder.write("3.safetensors", shard({"v"}, 0.0f));

    expect_refused(open_folder(folder.path()), ErrorCode::BadFormat,
                   {"'1.safetensors'", "'2.safetensors'", kIndex});
    for (const auto& [file, value] : {std::pair{"1.safetensors", 1.0f}, {"2.safetensors", 2.0f}}) {
      folder.write(kIndex, index({{"w", file}, {"v", "3.safetensors"}}));
      const auto got = open_folder(folder.path());
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(value_of(*got, "w"), value);
      EXPECT_EQ(got->tensors.size(), 2u);
      EXPECT_EQ(got->warnings.size(), 1u);
    }
  }
}

TEST(Folder, ReadsAWholeSetOfShardsWithoutAnIndex) {
  const TemporaryFolder folder;
  folder.write("model-00001-of-00002.safetensors", shard({"a", "b"}, 1.0f));
  expect_refused(open_folder(folder.path()), ErrorCode::NotFound,
                 {"1 of 2", "'model-00002-of-00002.safetensors'"});
  folder.write("model-00002-of-00002.safetensors", shard({"c"}, 2.0f));
  const auto got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->tensors.size(), 3u);
  EXPECT_EQ(value_of(*got, "b"), 1.0f);
  EXPECT_EQ(value_of(*got, "c"), 2.0f);

  folder.write("model-00002-of-00002.safetensors", shard({"b"}, 2.0f));
  expect_refused(
      open_folder(folder.path()), ErrorCode::BadFormat,
      {"'b'", "'model-00001-of-00002.safetensors'", "'model-00002-of-00002.safetensors'", kIndex});
  folder.write("other.safetensors", shard({"z"}));  // nothing says what it is for
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, {"'other.safetensors'", kIndex});
}

TEST(Folder, LeavesOutTensorsThatTheIndexDoesNotPlace) {
  const TemporaryFolder folder;
  folder.write("1.safetensors", shard({"a", "b"}, 1.0f));
  folder.write("2.safetensors", shard({"b", "c", "extra"}, 2.0f));
  folder.write(kIndex,
               index({{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "2.safetensors"}}));
  const auto got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->tensors.size(), 3u);
  EXPECT_EQ(value_of(*got, "b"), 2.0f);
  ASSERT_EQ(got->warnings.size(), 2u);
  EXPECT_NE(got->warnings[0].find("'b'"), std::string::npos);
  EXPECT_NE(got->warnings[1].find("'extra'"), std::string::npos);
}

TEST(Folder, WarnsOfStrayFiles) {
  const TemporaryFolder folder;
  write_three_shards(folder);
  folder.write("model.safetensors", shard({"a"}, 9.0f));
  auto got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "a"), 1.0f);  // the index wins
  ASSERT_EQ(got->warnings.size(), 1u);
  EXPECT_NE(got->warnings[0].find("'model.safetensors'"), std::string::npos);

  for (const char* name : {"m1.safetensors", "m2.safetensors", "m3.safetensors"}) {
    fs::remove(folder.path() / name);
  }
  expect_refused(open_folder(folder.path()), ErrorCode::NotFound,
                 {"m1.safetensors", "m2.safetensors", "m3.safetensors", "model.safetensors alone"});
  fs::remove(folder.path() / kIndex);
  folder.write("other.safetensors", shard({"z"}));
  got = open_folder(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(value_of(*got, "a"), 9.0f);
  ASSERT_EQ(got->warnings.size(), 1u);
  EXPECT_NE(got->warnings[0].find("'other.safetensors'"), std::string::npos);
}

TEST(Folder, RefusesBadIndexes) {
  const TemporaryFolder folder;
  folder.write("m.safetensors", shard({"w"}));
  const auto refused = [&](std::string_view text, const std::vector<std::string>& words) {
    folder.write(kIndex, text);
    expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, words);
  };
  refused("", {kIndex, "empty"});
  refused(" ", {kIndex, "JSON"});
  refused("[]", {"not a JSON object"});
  refused("3", {"not a JSON object"});
  refused("{}", {"no weight_map"});
  refused(R"({"weight_map":{}})", {"no tensors"});
  refused(R"({"weight_map":[]})", {"weight_map is not an object"});
  refused(R"({"weight_map":"x"})", {"weight_map is not an object"});
  refused(R"({"weight_map":{"w":3}})", {"'w'", "not a string"});
  refused(R"({"weight_map":{"w":{"x":"y"}}})", {"'w'", "not a string"});
  refused(R"({"weight_map":{"w":"m.safetensors"},"weight_map":{}})", {"twice"});
  refused(R"({"weight_map":{"w":"m.safetensors","w":"m.safetensors"}})", {"'w'", "twice"});
  refused(R"({"weight_map":{"w":"m.safetensors")", {"JSON"});
  refused(R"({"weight_map":{"w":"m.safetensors"}})" + std::string(1, '\0'), {"zero byte"});
  refused(R"({"metadata":)" + std::string(100'000, '['), {"JSON"});
  fs::remove(folder.path() / kIndex);
  fs::create_directory(folder.path() / kIndex);
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, {kIndex, "not a regular file"});
}

TEST(Folder, RefusesTextsOfNoBytes) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "chat_template.jinja"}) {
    const TemporaryFolder folder;
    folder.write("model.safetensors", shard({"w"}));
    folder.write(name, "");
    expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, {name, "empty"});
  }
}

TEST(Folder, KeepsTextsWithinTheirLimits) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", shard({"w"}));
  const fs::path config = folder.write("config.json", "{}");
  fs::resize_file(config, (uint64_t{1} << 40));  // a hole: it takes no room
  expect_refused(open_folder(folder.path()), ErrorCode::TooLarge,
                 {"config.json", "1099511627776", "16777216"});
  fs::remove(config);
  fs::create_directory(config);
  expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, {"config.json", "regular"});
}

// Whoever walks through the JSON later may do so by recursion: this would end its stack.
TEST(Folder, RefusesDeepNesting) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", shard({"a"}));
  const auto nested = [](size_t depth) {
    return R"({"a":"\"[[","b":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  folder.write("config.json", nested(255));
  EXPECT_TRUE(open_folder(folder.path()));
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    folder.write(name, nested(100'000));
    expect_refused(open_folder(folder.path()), ErrorCode::BadFormat, {name, "256"});
    fs::remove(folder.path() / name);
  }
}

TEST(Folder, TellsWhichFileToName) {
  const TemporaryFolder folder;
  expect_refused(open_folder(folder.path()), ErrorCode::NotFound, {".safetensors", ".gguf"});
  folder.write("a.gguf", "GGUF");
  expect_refused(open_folder(folder.path()), ErrorCode::BadUsage,
                 {"name the file itself", (folder.path() / "a.gguf").native()});
  folder.write("b.gguf", "GGUF");
  expect_refused(open_folder(folder.path()), ErrorCode::BadUsage, {"'a.gguf'", "'b.gguf'"});
}

}  // namespace
}  // namespace paceline
