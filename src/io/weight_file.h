// A mapped weight file, and its SHA-256, remembered between runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"

namespace paceline {

// What tells one state of a file from another without reading it.
struct FileStamp {
  uint64_t size = 0;
  int64_t mtime_ns = 0;  // since the epoch
  uint64_t inode = 0;

  bool operator==(const FileStamp&) const = default;
};

struct WeightFile {
  std::string name;  // as the folder or the user calls it
  std::filesystem::path path;
  FileStamp stamp;  // when it was mapped
  MappedFile map;
};

// Maps a regular file (links are followed); folders, pipes and devices are refused unopened.
Result<WeightFile> open_weight_file(const std::filesystem::path& path, std::string name);

// The SHA-256 of the mapped bytes as 64 hex digits. A digest is remembered for the absolute path
// (io/user_cache.h) and taken from there while size, modification time and inode are the same.
std::string cached_sha256(const WeightFile& file);

}  // namespace paceline
