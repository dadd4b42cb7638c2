#include "io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;

Error OutputFile::failed(const char* what) const {
  return {ErrorCode::Io, fmt::format("{}: {}: {}", shown_path(path_), what, std::strerror(errno))};
}

Result<OutputFile> OutputFile::create(const fs::path& path) {
  static std::atomic<int> next = 0;
  OutputFile file;
  file.path_ = path;
  fs::path temporary = path;
  temporary += fmt::format(".{}.{}.part", ::getpid(), next++);
  file.fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return file.failed("cannot be written");
  file.temporary_ = std::move(temporary);
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, {})),
      temporary_(std::exchange(other.temporary_, {})) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  check(fd_ >= 0, "OutputFile: written after commit");
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<void> OutputFile::commit() {
  check(fd_ >= 0, "OutputFile: committed twice");
  if (::fsync(fd_) != 0) return failed("cannot be written to disk");
  if (::close(std::exchange(fd_, -1)) != 0) return failed("cannot be closed");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("cannot be put in its place");
  temporary_.clear();
  // The name is on disk only when its folder is; a file system that cannot do this is no fault.
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
  return {};
}

}  // namespace paceline
