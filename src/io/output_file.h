// Files and folders that appear whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace paceline {

// Written under a temporary name beside its place, then renamed over it. Whatever stood there stays
// until commit(), and running programs that mapped it keep what they have. Destroyed uncommitted,
// it leaves nothing.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  Result<void> write(std::span<const std::byte> bytes);
  // Through to the disk, then to its place. Nothing may be written afterwards.
  Result<void> commit();

 private:
  OutputFile() = default;
  Error failed(const char* what) const;  // with errno's words

  int fd_ = -1;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once there is nothing to remove
};

// A new folder, filled under a hidden name beside its place, then renamed. Destroyed uncommitted,
// it is gone with all that is in it.
class OutputFolder {
 public:
  // BadUsage where a file or a folder that is not empty stands already, or the folder around it
  // does not exist. `flag` is how the error calls it ("--out").
  static Result<OutputFolder> create(const std::filesystem::path& path, const char* flag);
  ~OutputFolder();
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&& other) noexcept;

  const std::filesystem::path& temporary() const { return temporary_; }  // where to write
  const std::filesystem::path& path() const { return path_; }            // where it will stand
  // Its files are on disk already.
  Result<void> commit();

 private:
  OutputFolder() = default;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once there is nothing to remove
};

// A whole file with this text.
Result<void> write_text_file(const std::filesystem::path& path, std::string_view text);

// Names in a folder reach the disk with it. A file system that has no such call is no fault.
Result<void> sync_folder(const std::filesystem::path& folder);

// Io, with both numbers, if fewer than `bytes` are free where `folder` stands.
Result<void> check_room(const std::filesystem::path& folder, uint64_t bytes);

}  // namespace paceline
