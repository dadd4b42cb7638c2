#include "apps/json_file.h"

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

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::Io, fmt::format("--json {}: {}: {}", path, what, std::strerror(errno))};
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

Result<void> write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "cannot write");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

void JsonFile::add_flag(Flags& flags) {
  flags.text("--json", "FILE", path_, "write a report as JSON; - for standard output");
}

Result<void> JsonFile::check(const std::string& input) const {
  if (!wanted() || is_stdout()) return {};
  if (path_->empty()) return Error{ErrorCode::BadUsage, "--json wants a file name or -, not ''"};
  std::error_code ignored;
  if (fs::is_directory(*path_, ignored)) {
    return Error{ErrorCode::BadUsage, fmt::format("--json {}: that is a folder", *path_)};
  }
  if (!input.empty() && fs::equivalent(*path_, input, ignored) && !ignored) {
    return Error{ErrorCode::BadUsage, fmt::format("--json {}: that is what is to be read", *path_)};
  }
  if (is_special(*path_)) {
    if (access(path_->c_str(), W_OK) != 0) return io_error(*path_, "cannot write");
    return {};
  }
  const fs::path folder = fs::absolute(*path_).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return io_error(*path_, "cannot write into its folder");
  }
  const auto trial = OutputFile::create(target_of(*path_));  // gone when it is dropped
  return trial ? Result<void>() : Result<void>(trial.error());
}

Result<void> JsonFile::write(const Json& json) const {
  if (!wanted()) return {};
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (is_stdout()) {
    std::fflush(stdout);
    return write_all(STDOUT_FILENO, text, *path_);
  }
  if (is_special(*path_)) {
    const int file = open(path_->c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return io_error(*path_, "cannot open");
    auto written = write_all(file, text, *path_);
    close(file);
    return written;
  }

  auto file = OutputFile::create(target_of(*path_));
  if (!file) return file.error();
  auto written = file->write(std::as_bytes(std::span(text)));
  return written ? file->commit() : written;
}

}  // namespace paceline::apps
