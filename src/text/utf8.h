// UTF-8, one character at a time, with the replacement rule that all text here follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Kind {
  Valid,       // a whole character
  Invalid,     // a maximal part that can never become one (Unicode section 3.9, table 3-8)
  Incomplete,  // the text ends inside what may still become one
};

struct Utf8Char {
  Utf8Kind kind = Utf8Kind::Valid;
  int length = 0;     // bytes that it takes, at least 1
  uint32_t code = 0;  // the code point when valid
};

// What stands at text[pos]; pos < text.size().
Utf8Char read_utf8(std::string_view text, size_t pos);

bool is_valid_utf8(std::string_view text);
// `text` with every maximal invalid part, an unfinished end included, replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

void append_utf8(uint32_t code, std::string& text);

}  // namespace paceline
