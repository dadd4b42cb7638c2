#include "io/weight_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/sha256.h"
#include "io/shown.h"
#include "io/user_cache.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

// Empty where the path has no absolute form.
std::string key_of(const fs::path& path) {
  std::error_code failure;
  const fs::path absolute = fs::absolute(path, failure);
  return failure ? std::string() : absolute.native();
}

// A record is one line: "state digest".
std::optional<std::string> remembered(std::string_view kind, const std::string& key,
                                      const std::string& state) {
  constexpr size_t kDigits = 64;
  const auto line = recall(kind, key);
  if (!line || line->size() < kDigits) return std::nullopt;
  const std::string digest = line->substr(line->size() - kDigits);
  if (*line != state + " " + digest) return std::nullopt;
  if (digest.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return digest;
}

}  // namespace

Result<WeightFile> open_weight_file(const fs::path& path, std::string name) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Error{ErrorCode::NotFound, shown_path(path) + ": no such file or folder"};
    }
    return Error{ErrorCode::Io, fmt::format("{}: {}", shown_path(path), std::strerror(errno))};
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: not a regular file", shown_path(path))};
  }
  auto map = MappedFile::open(path);
  if (!map) return map.error();
  WeightFile file;
  file.name = std::move(name);
  file.path = path;
  file.stamp = {static_cast<uint64_t>(status.st_size),
                int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
                status.st_ino};
  file.map = std::move(*map);
  return file;
}

std::string remembered_digest(std::string_view kind, const fs::path& path, const std::string& state,
                              const std::function<std::string()>& compute) {
  const std::string key = state.empty() ? std::string() : key_of(path);
  if (key.empty()) return compute();
  if (auto digest = remembered(kind, key, state)) return *std::move(digest);
  std::string digest = compute();
  remember(kind, key, state + " " + digest);
  return digest;
}

std::string cached_sha256(const WeightFile& file) {
  const FileStamp& stamp = file.stamp;
  std::string state;  // none where the file was changed while it was opened
  if (file.map.bytes().size() == stamp.size)
    state = fmt::format("{} {} {}", stamp.size, stamp.mtime_ns, stamp.inode);
  return remembered_digest("sha256", file.path, state, [&] { return sha256(file.map.bytes()); });
}

}  // namespace paceline
