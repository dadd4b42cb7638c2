#include "io/user_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "base/sha256.h"
#include "io/output_file.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

fs::path cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");  // relative ones are to be ignored
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "paceline";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return fs::path(home) / ".cache" / "paceline";
}

// Empty where there is no folder.
fs::path place_of(std::string_view kind, std::string_view key) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  return folder / kind / sha256(std::as_bytes(std::span(key))).substr(0, 32);
}

}  // namespace

std::optional<std::string> recall(std::string_view kind, std::string_view key) {
  const fs::path path = place_of(kind, key);
  if (path.empty()) return std::nullopt;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || in.eof()) return std::nullopt;  // a whole line ends
  return line;
}

// A cache that cannot be written is slower, not wrong, so failures end here.
void remember(std::string_view kind, std::string_view key, std::string_view line) {
  const fs::path path = place_of(kind, key);
  if (path.empty()) return;
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure) return;
  auto file = OutputFile::create(path);
  const std::string whole = std::string(line) + "\n";
  if (!file || !file->write(std::as_bytes(std::span(whole)))) return;
  (void)file->commit();
}

}  // namespace paceline
