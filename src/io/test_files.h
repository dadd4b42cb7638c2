// Files that tests of this box make: temporary folders, and containers put together byte by byte,
// so that what the readers are shown does not come from our own writers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline {

// A folder that is gone with all its files when the test is done. Its name has a space and letters
// outside of ASCII, since users' folders do.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "päce line 模型 XXXXXX").native();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// GGUF bytes in the order they stand in a file.
class GgufBytes {
 public:
  GgufBytes(int64_t n_tensors, int64_t n_keys, uint32_t version = 3) {
    bytes_ = "GGUF";
    put(version).put(n_tensors).put(n_keys);
  }
  template <class T>
  GgufBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    put(uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  template <class T>
  GgufBytes& key(std::string_view name, uint32_t type, T value) {
    return text(name).put(type).put(value);
  }
  GgufBytes& info(std::string_view name, const std::vector<int64_t>& ne, uint32_t type,
                  uint64_t offset) {
    text(name).put(static_cast<uint32_t>(ne.size()));
    for (const int64_t length : ne) put(length);
    return put(type).put(offset);
  }
  GgufBytes& pad(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufBytes& zeros(size_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  GgufBytes& floats(const std::vector<float>& values) {
    for (const float value : values) put(value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A safetensors file of this header and data; header_length as claimed, the header's own by
// default.
inline std::string safetensors_bytes(std::string_view header, std::string_view data,
                                     int64_t claimed = -1) {
  const uint64_t length = claimed < 0 ? header.size() : static_cast<uint64_t>(claimed);
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += header;
  bytes += data;
  return bytes;
}

// An error of this code whose sentence has all these words, stands on one line and ends in no full
// stop.
template <class ResultType>
void expect_refused(const ResultType& result, ErrorCode code,
                    const std::vector<std::string>& words) {
  ASSERT_FALSE(result.has_value());
  const std::string& message = result.error().message;
  EXPECT_EQ(result.error().code, code) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_FALSE(message.ends_with('.')) << message;
  EXPECT_LT(message.size(), 4000u);
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
  }
}

}  // namespace paceline
