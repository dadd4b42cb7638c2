// A file mapped for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace paceline {

class MappedFile {
 public:
  MappedFile() = default;
  // NotFound, or Io for a folder, a device, or what may not be read. An empty file maps to nothing.
  static Result<MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Brings these bytes of the file into memory and waits for it: by reads, which the system does in
  // large pieces and ahead of the reader, where page faults would wait for each. Nothing is read
  // where they are in memory already. Only the time changes.
  void read_ahead(std::span<const std::byte> bytes) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;  // for read_ahead()
};

// The pages of a mapped file that lie inside `bytes` leave this process's memory; the file's cache
// keeps them. Reading them again is allowed, and brings them back.
void release_pages(std::span<const std::byte> bytes);

}  // namespace paceline
