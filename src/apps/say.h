// Printing that never throws: fmt::print does where the other end is closed or full.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace paceline::apps {

// What cannot be written is dropped; the stream remembers it, see finish_output().
template <class... Values>
void say(std::FILE* file, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), file);
}

template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  say(stdout, format, std::forward<Values>(values)...);
}

}  // namespace paceline::apps
