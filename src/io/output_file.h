// A file that appears whole or not at all.
#pragma once

#include <filesystem>
#include <span>

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

}  // namespace paceline
