#include "io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
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
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  if (!path.has_filename() || fs::is_directory(there))
    return Error{ErrorCode::Io, fmt::format("{}: a folder, and the name of a file is wanted",
                                            path.empty() ? "''" : shown_path(path))};
  if (fs::is_other(there) && there.type() != fs::file_type::unknown)
    return Error{ErrorCode::Io,
                 fmt::format("{}: not a regular file, and a new one would take its place",
                             shown_path(path))};
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
  // Here the file stands already: what its folder says is no reason to deny it.
  (void)sync_folder(path_.parent_path());
  return {};
}

Result<OutputFolder> OutputFolder::create(const fs::path& given, const char* flag) {
  const auto bad = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("{} {}: {}", flag, shown_path(given), what)};
  };
  std::error_code failure;
  // Through links, and without the slash at the end, whose file name is empty.
  fs::path path = fs::weakly_canonical(fs::absolute(given, failure), failure);
  if (given.empty() || failure) return bad(ErrorCode::BadUsage, "no name of a folder");
  if (!path.has_filename()) path = path.parent_path();
  const bool exists = fs::exists(path, failure);
  if (exists && !fs::is_directory(path, failure))
    return bad(ErrorCode::BadUsage, "there is a file of that name");
  if (exists && !fs::is_empty(path, failure))
    return bad(ErrorCode::BadUsage, "the folder is not empty; choose a new one");
  const fs::path parent = path.parent_path();
  if (!fs::is_directory(parent, failure))
    return bad(ErrorCode::BadUsage, "the folder that it would stand in does not exist");
  OutputFolder folder;
  folder.path_ = path;
  fs::path temporary = parent / fmt::format(".{}.{}.part", path.filename().native(), ::getpid());
  if (::mkdir(temporary.c_str(), 0777) != 0)
    return bad(ErrorCode::Io, fmt::format("cannot be made: {}", std::strerror(errno)));
  folder.temporary_ = std::move(temporary);
  return folder;
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), temporary_(std::exchange(other.temporary_, {})) {}

OutputFolder& OutputFolder::operator=(OutputFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

Result<void> OutputFolder::commit() {
  check(!temporary_.empty(), "OutputFolder: committed twice");
  if (auto synced = sync_folder(temporary_); !synced) return synced;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return Error{ErrorCode::Io, fmt::format("{}: cannot be put in its place: {}", shown_path(path_),
                                            std::strerror(errno))};
  temporary_.clear();
  (void)sync_folder(path_.parent_path());
  return {};
}

Result<void> write_text_file(const fs::path& path, std::string_view text) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  auto written = file->write(std::as_bytes(std::span(text)));
  return written ? file->commit() : written;
}

Result<void> sync_folder(const fs::path& given) {
  const fs::path folder = given.empty() ? fs::path(".") : given;
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fault = fd < 0 ? errno : 0;
  if (fd >= 0) {
    if (::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) fault = errno;
    ::close(fd);
  }
  if (fault == 0) return {};
  return Error{ErrorCode::Io, fmt::format("{}: cannot be written to disk: {}", shown_path(folder),
                                          std::strerror(fault))};
}

Result<void> check_room(const fs::path& folder, uint64_t bytes) {
  std::error_code failure;
  const auto space = fs::space(folder, failure);
  if (failure || space.available >= bytes) return {};
  return Error{ErrorCode::Io, fmt::format("{}: {} bytes are needed, {} are free; nothing was "
                                          "changed",
                                          shown_path(folder), bytes, space.available)};
}

}  // namespace paceline
