// check(): our own mistakes end the program with the place and a sentence. What the world can break
// (files, flags, requests) returns Result instead.
#pragma once

#include <source_location>
#include <string_view>

namespace paceline {

[[noreturn]] void check_failed(std::string_view message, std::source_location where);

inline void check(bool holds, std::string_view message,
                  std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    check_failed(message, where);
}

}  // namespace paceline
