#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace paceline {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const auto code = errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io;
    return Error{code, path.string() + ": cannot be opened: " + std::strerror(errno)};
  }
  MappedFile file;
  struct stat status = {};
  Result<MappedFile> result = Error{};
  if (fstat(fd, &status) != 0) {
    result = Error{ErrorCode::Io, path.string() + ": " + std::strerror(errno)};
  } else if (!S_ISREG(status.st_mode)) {
    result = Error{ErrorCode::Io, path.string() + ": not a regular file"};
  } else if (status.st_size == 0) {
    result = std::move(file);
  } else {
    const auto size = static_cast<size_t>(status.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      result = Error{ErrorCode::Io, path.string() + ": cannot be mapped: " + std::strerror(errno)};
    } else {
      file.data_ = static_cast<const std::byte*>(data);
      file.size_ = size;
      result = std::move(file);
    }
  }
  ::close(fd);
  return result;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + bytes.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace paceline
