#include "apps/report_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "apps/output_path.h"
#include "io/output_file.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

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
  if (is_special(*path) && !fs::is_directory(*path, ignored)) {
    if (access(path->c_str(), W_OK) != 0) return io_error(flag_, *path, "cannot write");
    return {};
  }
  return check_output(flag_, *path,
                      input.empty() ? std::span<const std::string>() : std::span(&input, 1));
}

Result<void> check_outputs(std::initializer_list<const ReportFile*> outputs,
                           std::span<const std::string> inputs) {
  const auto whole = [](const ReportFile& file) {
    return fs::absolute(*file.path).lexically_normal();
  };
  for (const ReportFile* file : outputs) {
    if (!file->path) continue;
    if (auto ok = file->check({}); !ok) return ok;
    for (const std::string& input : inputs)
      if (auto ok = file->check(input); !ok) return ok;
    if (is_special(*file->path) || file->is_stdout()) continue;
    for (const ReportFile* other : outputs)
      if (other != file && other->path && !other->is_stdout() && whole(*other) == whole(*file))
        return Error{ErrorCode::BadUsage, fmt::format("{} {}: that is where {} goes", file->flag(),
                                                      *file->path, other->flag())};
  }
  return {};
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
