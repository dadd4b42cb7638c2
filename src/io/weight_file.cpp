#include "io/weight_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/sha256.h"
#include "io/output_file.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

fs::path cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");  // relative ones are to be ignored
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "paceline" / "sha256";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return fs::path(home) / ".cache" / "paceline" / "sha256";
}

std::optional<fs::path> record_path(const fs::path& file) {
  const fs::path folder = cache_folder();
  std::error_code failure;
  const fs::path absolute = fs::absolute(file, failure);
  if (folder.empty() || failure) return std::nullopt;
  const std::string key = sha256(std::as_bytes(std::span(absolute.native())));
  return folder / key.substr(0, 32);
}

// A record is one line: "size mtime_ns inode digest".
std::string record(const FileStamp& stamp, std::string_view digest) {
  return fmt::format("{} {} {} {}\n", stamp.size, stamp.mtime_ns, stamp.inode, digest);
}

std::optional<std::string> remembered(const fs::path& path, const FileStamp& stamp) {
  constexpr size_t kDigits = 64;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line.size() < kDigits) return std::nullopt;
  const std::string digest = line.substr(line.size() - kDigits);
  if (line + "\n" != record(stamp, digest)) return std::nullopt;
  if (digest.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return digest;
}

// A cache that cannot be written is slower, not wrong, so failures end here.
void remember(const fs::path& path, const std::string& line) {
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure) return;
  auto file = OutputFile::create(path);
  if (!file || !file->write(std::as_bytes(std::span(line)))) return;
  (void)file->commit();
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

std::string cached_sha256(const WeightFile& file) {
  const auto path = record_path(file.path);
  if (path) {
    if (auto digest = remembered(*path, file.stamp)) return *std::move(digest);
  }
  std::string digest = sha256(file.map.bytes());
  if (path && file.map.bytes().size() == file.stamp.size) {
    remember(*path, record(file.stamp, digest));
  }
  return digest;
}

}  // namespace paceline
