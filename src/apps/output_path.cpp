#include "apps/output_path.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "io/output_file.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

// Whether the file is this input, or one that is read of this folder.
bool is_part_of(const fs::path& path, const fs::path& input) {
  std::error_code ignored;
  if (same_file(path, input) ||
      fs::absolute(path).lexically_normal() == fs::absolute(input).lexically_normal())
    return true;
  if (!fs::is_directory(input, ignored)) return false;
  if (!fs::exists(path, ignored) || !same_file(fs::absolute(path).parent_path(), input))
    return false;
  const std::string name = path.filename().string();
  constexpr std::string_view kRead[] = {"config.json",         "generation_config.json",
                                        "tokenizer.json",      "tokenizer_config.json",
                                        "chat_template.jinja", "model.safetensors.index.json",
                                        "manifest.jsonl"};
  return std::ranges::count(kRead, name) > 0 || name.ends_with(".pldump") ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

}  // namespace

Error io_error(const std::string& flag, const std::string& path, const char* what) {
  return {ErrorCode::Io, fmt::format("{} {}: {}: {}", flag, path, what, std::strerror(errno))};
}

bool is_special(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

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

Result<void> check_output(const std::string& flag, const std::string& path,
                          std::span<const std::string> inputs) {
  std::error_code ignored;
  if (path.empty()) return Error{ErrorCode::BadUsage, flag + " wants a file name, not ''"};
  if (fs::is_directory(path, ignored))
    return Error{ErrorCode::BadUsage, fmt::format("{} {}: that is a folder", flag, path)};
  for (const std::string& input : inputs)
    if (is_part_of(path, input))
      return Error{ErrorCode::BadUsage,
                   fmt::format("{} {}: that is what is to be read", flag, path)};
  if (is_special(path))
    return Error{ErrorCode::BadUsage, fmt::format("{} {}: that is no regular file", flag, path)};
  const fs::path folder = fs::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return io_error(flag, path, "cannot write into its folder");
  const auto trial = OutputFile::create(target_of(path));  // gone when it is dropped
  return trial ? Result<void>() : Result<void>(trial.error());
}

}  // namespace paceline::apps
