#include "io/writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "io/output_file.h"
#include "io/quantize.h"
#include "io/safetensors_reader.h"
#include "io/test_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Values that tell tensor, row and column apart, in the tensor's own type.
FillRows numbered(const std::vector<TensorSpec>& specs) {
  return [&specs](size_t tensor, int64_t first_row, std::span<std::byte> rows) -> Result<void> {
    const TensorSpec& spec = specs[tensor];
    const auto count =
        static_cast<int64_t>(rows.size()) / block_bytes(spec.type) * block_length(spec.type);
    const int64_t columns = spec.shape.empty() ? 1 : spec.shape.back();
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), static_cast<float>(first_row * columns));
    for (float& value : values) value = value / 64 + static_cast<float>(tensor);
    quantize(spec.type, values, rows);
    return {};
  };
}

// What `numbered` writes, whole.
std::vector<std::byte> expected_bytes(const std::vector<TensorSpec>& specs, size_t tensor) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(specs[tensor].rows() * specs[tensor].row_bytes()));
  EXPECT_TRUE(numbered(specs)(tensor, 0, bytes));
  return bytes;
}

void expect_same_tensors(const Checkpoint& got, const std::vector<TensorSpec>& specs) {
  ASSERT_EQ(got.tensors().size(), specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const Tensor* tensor = got.find(specs[i].name);
    ASSERT_NE(tensor, nullptr) << specs[i].name;
    EXPECT_EQ(tensor->type, specs[i].type);
    EXPECT_EQ(tensor->shape, specs[i].shape);
    const std::vector<std::byte> want = expected_bytes(specs, i);
    ASSERT_EQ(tensor->data.size(), want.size()) << specs[i].name;
    if (!want.empty()) {
      EXPECT_EQ(std::memcmp(tensor->data.data(), want.data(), want.size()), 0) << specs[i].name;
    }
  }
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(WriteGguf, ComesBackFromTheReader) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {
      {"f32", DType::F32, {3}},
      {"f16", DType::F16, {2, 5}},
      {"bf16", DType::BF16, {7, 1, 3}},
      {"q8_0", DType::Q8_0, {3, 64}},
      {"q4_0", DType::Q4_0, {2, 2, 32}},
      {"q4_1", DType::Q4_1, {5, 96}},
      {"scalar", DType::F32, {}},
      {"none", DType::Q8_0, {0, 32}},
      {"large", DType::F32, {1500, 1000}},  // more than one piece
  };
  const std::vector<GgufKeyValue> metadata = {
      {"general.architecture", std::string("llama")},
      {"u16", uint16_t{3}},
      {"i64", int64_t{-1}},
      {"f", 0.25f},
      {"b", true},
      {"tokens", std::vector<std::string>{"a", "", "ü"}},
      {"scores", std::vector<float>{-1.5f}},
      {"types", std::vector<int32_t>{1, -3}},
  };
  const fs::path path = folder.path() / "ge schrieben.gguf";
  const auto written = write_gguf(path, metadata, specs, numbered(specs));
  ASSERT_TRUE(written) << written.error().message;
  const auto got = Checkpoint::open(path);
  ASSERT_TRUE(got) << got.error().message;
  expect_same_tensors(*got, specs);
  EXPECT_TRUE(got->warnings().empty());
  const Metadata& m = *got->metadata();
  EXPECT_EQ(m.text("general.architecture"), "llama");
  EXPECT_EQ(m.integer("u16"), 3);
  EXPECT_EQ(m.integer("i64"), -1);
  EXPECT_EQ(m.number("f"), 0.25);
  EXPECT_EQ(m.boolean("b"), true);
  EXPECT_EQ(m.texts("tokens"), (std::vector<std::string_view>{"a", "", "ü"}));
  EXPECT_EQ(m.numbers("scores"), (std::vector<double>{-1.5}));
  EXPECT_EQ(m.integers("types"), (std::vector<int64_t>{1, -3}));
  EXPECT_EQ(files_in(folder.path()), 1u);
  EXPECT_EQ(fs::file_size(path) % 32, 0u);
}

TEST(WriteSafetensors, ComesBackFromTheReaderAligned) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {
      {"odd", DType::BF16, {3}},    {"w\"ö\n", DType::F32, {2, 3}},
      {"f16", DType::F16, {1, 2}},  {"scalar", DType::F32, {}},
      {"none", DType::F32, {4, 0}}, {"large", DType::F32, {1500, 1000}},
  };
  const fs::path path = folder.path() / "model.safetensors";
  const auto written = write_safetensors(path, specs, {{"a", "ö"}}, numbered(specs));
  ASSERT_TRUE(written) << written.error().message;
  const auto got = Checkpoint::open(folder.path());
  ASSERT_TRUE(got) << got.error().message;
  expect_same_tensors(*got, specs);

  const std::string bytes = read_whole(path);
  const auto contents = read_safetensors(bytes_of(bytes), "x");
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->metadata,
            (std::vector<std::pair<std::string, std::string>>{{"a", "ö"}, {"format", "pt"}}));
  for (const Tensor& tensor : contents->tensors) {
    if (tensor.data.empty()) continue;
    const auto offset = tensor.data.data() - bytes_of(bytes).data();
    EXPECT_EQ(offset % block_bytes(tensor.type), 0) << tensor.name;
  }
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ((8 + header) % 64, 0u);
}

TEST(WriteSafetensors, FillsRowsInOrderAndInPiecesOfBoundedSize) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"w", DType::F32, {3000, 1024}}};  // 12 MB
  int64_t next_row = 0;
  const auto fill = [&](size_t, int64_t first_row, std::span<std::byte> rows) -> Result<void> {
    EXPECT_EQ(first_row, next_row);
    EXPECT_EQ(rows.size() % 4096, 0u);
    EXPECT_LE(rows.size(), size_t{4} << 20);
    next_row += static_cast<int64_t>(rows.size() / 4096);
    return {};
  };
  ASSERT_TRUE(write_safetensors(folder.path() / "m.safetensors", specs, {}, fill));
  EXPECT_EQ(next_row, 3000);
}

TEST(Writers, LeaveWhatIsThereWhenTheyFail) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"w", DType::F32, {4}}};
  const auto failing = [](size_t, int64_t, std::span<std::byte>) -> Result<void> {
    return Error{ErrorCode::Interrupted, "stopped"};
  };
  const fs::path path = folder.write("m.gguf", "old");
  expect_refused(write_gguf(path, {}, specs, failing), ErrorCode::Interrupted, {"stopped"});
  expect_refused(write_safetensors(path, specs, {}, failing), ErrorCode::Interrupted, {"stopped"});
  EXPECT_EQ(read_whole(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);

  expect_refused(write_gguf(folder.path() / "no/m.gguf", {}, specs, numbered(specs)), ErrorCode::Io,
                 {"no/m.gguf"});
  fs::create_directory(folder.path() / "taken");
  expect_refused(write_gguf(folder.path() / "taken", {}, specs, numbered(specs)), ErrorCode::Io,
                 {"taken"});
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(Writers, TakeThePlaceOfFilesAlone) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, folder.path(), folder.path() / "", fs::path()})
    EXPECT_FALSE(write_text_file(path, "text")) << path;
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files_in(folder.path()), 1u);
  EXPECT_FALSE(MappedFile::open(pipe)) << "and a pipe without a writer is not waited for";
}

TEST(Writers, KeepAMappedOldFileWhole) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"w", DType::F32, {4}}};
  const fs::path path = folder.path() / "m.gguf";
  ASSERT_TRUE(write_gguf(path, {}, specs, numbered(specs)));
  const auto old = Checkpoint::open(path);
  ASSERT_TRUE(old);
  const auto zeros = [](size_t, int64_t, std::span<std::byte> rows) -> Result<void> {
    std::memset(rows.data(), 0, rows.size());
    return {};
  };
  ASSERT_TRUE(write_gguf(path, {}, specs, zeros));
  expect_same_tensors(*old, specs);
}

TEST(Writers, RefuseWhatTheReaderWould) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x";
  const auto gguf = [&](const std::vector<GgufKeyValue>& metadata,
                        const std::vector<TensorSpec>& specs) {
    return write_gguf(path, metadata, specs, numbered(specs));
  };
  const auto safetensors = [&](const std::vector<TensorSpec>& specs) {
    return write_safetensors(path, specs, {}, numbered(specs));
  };
  const ErrorCode usage = ErrorCode::BadUsage;
  expect_refused(gguf({{"", 1u}}, {}), usage, {"key"});
  expect_refused(gguf({{std::string("a\0", 2), 1u}}, {}), usage, {"a\\x00"});
  expect_refused(gguf({{std::string(65'536, 'k'), 1u}}, {}), usage, {"65536"});
  expect_refused(gguf({{"k", 1u}, {"k", 2u}}, {}), usage, {"'k'", "twice"});
  expect_refused(gguf({{"general.alignment", 64u}}, {}), usage, {"general.alignment"});
  expect_refused(gguf({}, {{"", DType::F32, {1}}}), usage, {"1 to 63"});
  expect_refused(gguf({}, {{std::string(64, 'n'), DType::F32, {1}}}), usage, {"1 to 63"});
  expect_refused(gguf({}, {{"w", DType::F32, {1, 1, 1, 1, 1}}}), usage, {"'w'", "4 dimensions"});
  expect_refused(gguf({}, {{"w", DType::Q8_0, {48}}}), usage, {"'w'", "blocks"});
  expect_refused(gguf({}, {{"w", DType::F32, {-1}}}), usage, {"'w'", "negative"});
  expect_refused(gguf({}, {{"w", DType::F32, {int64_t{1} << 40, int64_t{1} << 40}}}), usage,
                 {"'w'", "too large"});
  expect_refused(gguf({}, {{"w", DType::F32, {1}}, {"w", DType::F32, {1}}}), usage,
                 {"'w'", "twice"});
  expect_refused(safetensors({{"__metadata__", DType::F32, {1}}}), usage, {"__metadata__"});
  expect_refused(safetensors({{"", DType::F32, {1}}}), usage, {"empty"});
  expect_refused(safetensors({{"a\xff", DType::F32, {1}}}), usage, {"UTF-8"});
  expect_refused(safetensors({{"w", DType::Q4_0, {32}}}), usage, {"'w'", "type"});
  expect_refused(safetensors({{"w", DType::F32, {1}}, {"w", DType::F16, {1}}}), usage, {"twice"});
  EXPECT_EQ(files_in(folder.path()), 0u);
}

}  // namespace
}  // namespace paceline
