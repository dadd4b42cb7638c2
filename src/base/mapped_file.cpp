#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace paceline {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Not blocking: a pipe without a writer is to be refused, not waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
      file.fd_ = fd;
      return file;
    }
  }
  ::close(fd);
  return result;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  munmap(const_cast<std::byte*>(data_), size_);
  ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  return *this;
}

void MappedFile::read_ahead(std::span<const std::byte> bytes) const {
  if (bytes.empty()) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = static_cast<size_t>(bytes.data() - data_) / page * page;
  const size_t size = static_cast<size_t>(bytes.data() - data_) + bytes.size() - first;
  void* const start = const_cast<std::byte*>(data_) + first;

  std::vector<unsigned char> resident((size + page - 1) / page);
  const bool known = mincore(start, size, resident.data()) == 0;
  if (!known || std::ranges::any_of(resident, [](unsigned char r) { return (r & 1) == 0; })) {
    std::vector<std::byte> scratch(
        std::min(size, size_t{256} << 10));  // stays in the cores' caches
    for (size_t at = 0; at < size;) {
      const ssize_t n = pread(fd_, scratch.data(), std::min(scratch.size(), size - at),
                              static_cast<off_t>(first + at));
      if (n <= 0) return;  // whoever needs the bytes will fault them in
      at += static_cast<size_t>(n);
    }
  }
#ifdef MADV_POPULATE_READ  // Linux 5.14
  madvise(start, size, MADV_POPULATE_READ);
#endif
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + bytes.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace paceline
