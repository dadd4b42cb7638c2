// A mapped weight file, and its SHA-256, remembered between runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

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

// The SHA-256 of the mapped bytes as 64 hex digits, remembered while size, modification time and
// inode are the same.
std::string cached_sha256(const WeightFile& file);

// The digest, 64 hex digits, that was remembered for the absolute path among those of one kind
// (io/user_cache.h), if it was remembered in this state, one line; else what `compute` gives, which
// is remembered then. With an empty state nothing is.
std::string remembered_digest(std::string_view kind, const std::filesystem::path& path,
                              const std::string& state,
                              const std::function<std::string()>& compute);

}  // namespace paceline
