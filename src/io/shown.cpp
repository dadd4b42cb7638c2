#include "io/shown.h"

#include <fmt/format.h>

#include "io/utf8.h"

namespace paceline {
namespace {

constexpr size_t kLongestName = 96;

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = utf8_character_length(text);
    const bool c1_control =
        byte == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || byte < 0x20 || byte == 0x7f || c1_control) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace

std::string quoted_name(std::string_view name) {
  if (name.size() <= kLongestName) return fmt::format("'{}'", printable(name));
  return fmt::format("'{}...' ({} bytes)", printable(name.substr(0, kLongestName)), name.size());
}

std::string shown_path(const std::filesystem::path& path) { return printable(path.native()); }

}  // namespace paceline
