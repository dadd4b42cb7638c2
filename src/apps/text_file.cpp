#include "apps/text_file.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace paceline::apps {

Result<std::string> read_text(const std::string& what, const std::string& path) {
  constexpr size_t kLargest = size_t{1} << 30;
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "standard input" : path;
  std::error_code ignored;
  if (!is_stdin && std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::Io, fmt::format("{} {}: that is a folder", what, path)};
  }
  std::FILE* opened = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (opened == nullptr) {
    return Error{errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                 fmt::format("{} {}: {}", what, path, std::strerror(errno))};
  }
  const auto close = [is_stdin](std::FILE* file) {
    if (!is_stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(opened, close);

  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const size_t n = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), n);
    if (text.size() > kLargest) {
      return Error{ErrorCode::TooLarge, fmt::format("{} {}: more than 1 GiB", what, name)};
    }
    if (n < part.size()) break;
  }
  if (std::ferror(file.get()) != 0) {
    if (errno == EINTR) return Error{ErrorCode::Interrupted, "interrupted while reading " + name};
    return Error{ErrorCode::Io, fmt::format("{} {}: {}", what, name, std::strerror(errno))};
  }
  return text;
}

}  // namespace paceline::apps
