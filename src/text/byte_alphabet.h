// The alphabet in which byte-level BPE files write bytes: 256 printable characters (GPT-2).
// Bytes 33-126, 161-172 and 174-255 stand for themselves as code points; the remaining 68, in
// rising order, are U+0100, U+0101 and so on. A space is written U+0120.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

std::string to_byte_alphabet(std::string_view bytes);
// Nothing when a character of `written` is outside the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view written);

}  // namespace paceline
