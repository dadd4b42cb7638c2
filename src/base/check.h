// check(): our own mistakes end the program with the place and a sentence. What the world can break
// (files, flags, requests) returns Result instead.
#pragma once

#include <string_view>

namespace paceline {

[[noreturn]] void check_failed(std::string_view message, const char* file, int line);

// The place is that of the call. (std::source_location would say it, but clang-tidy 14 cannot read
// g++ 12's.)
inline void check(bool holds, std::string_view message, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    check_failed(message, file, line);
}

}  // namespace paceline
