#include "apps/report_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "io/output_file.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

// "--json FILE: cannot write: No space left on device"
Error io_error(const std::string& flag, const std::string& path, const char* what) {
  return {ErrorCode::Io, fmt::format("{} {}: {}: {}", flag, path, what, std::strerror(errno))};
}

// Pipes, devices and the like cannot be replaced by a rename.
bool is_special(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// The file to replace: a link keeps pointing to the file that it pointed to, there or not.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code failed;
  fs::path target = path;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(target, failed)); ++i) {
    const fs::path next = fs::read_symlink(target, failed);
    if (failed) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

Result<void> write_all(int file, std::string_view text, const std::string& flag,
                       const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(flag, path, "cannot write");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<void> ReportFile::check(const std::string& input) const {
  if (!path) return {};
  if (path->empty())
    return Error{ErrorCode::BadUsage, fmt::format("{} wants a file name{}, not ''", flag_,
                                                  takes_stdout_ ? " or -" : "")};
  if (is_stdout()) {
    if (takes_stdout_) return {};
    return Error{ErrorCode::BadUsage, fmt::format("{} wants a file name, not -", flag_)};
  }
  std::error_code ignored;
  if (fs::is_directory(*path, ignored))
    return Error{ErrorCode::BadUsage, fmt::format("{} {}: that is a folder", flag_, *path)};
  if (!input.empty() && fs::equivalent(*path, input, ignored) && !ignored)
    return Error{ErrorCode::BadUsage,
                 fmt::format("{} {}: that is what is to be read", flag_, *path)};
  if (is_special(*path)) {
    if (access(path->c_str(), W_OK) != 0) return io_error(flag_, *path, "cannot write");
    return {};
  }
  const fs::path folder = fs::absolute(*path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return io_error(flag_, *path, "cannot write into its folder");
  const auto trial = OutputFile::create(target_of(*path));  // gone when it is dropped
  return trial ? Result<void>() : Result<void>(trial.error());
}

Result<void> ReportFile::write(std::string_view text) const {
  if (!path) return {};
  if (is_stdout()) {
    std::fflush(stdout);
    return write_all(STDOUT_FILENO, text, flag_, *path);
  }
  if (is_special(*path)) {
    const int file = open(path->c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return io_error(flag_, *path, "cannot open");
    auto written = write_all(file, text, flag_, *path);
    close(file);
    return written;
  }

  auto file = OutputFile::create(target_of(*path));
  if (!file) return file.error();
  auto written = file->write(std::as_bytes(std::span(text)));
  return written ? file->commit() : written;
}

}  // namespace paceline::apps
