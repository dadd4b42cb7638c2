// What counts as UTF-8 in names that come from files.
#pragma once

#include <cstddef>
#include <string_view>

namespace paceline {

// Bytes of the UTF-8 character at the front of a text that is not empty (Unicode table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF); 0 where no such character stands.
size_t utf8_character_length(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace paceline
