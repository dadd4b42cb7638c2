// Names and paths from outside, made fit for an error sentence: one line, printable, short.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace paceline {

// 'name': control characters and bytes that are no UTF-8 become \xNN; beyond 96 bytes it is cut
// and its full length is told.
std::string quoted_name(std::string_view name);

// The path as the user would write it, without quotes, never cut, control characters as \xNN.
std::string shown_path(const std::filesystem::path& path);

// "a, b, c and 7 more": at most `most` names, each as it comes.
template <class Names>
std::string listed(const Names& names, size_t most) {
  std::string text;
  size_t count = 0;
  for (const auto& name : names) {
    if (count == most) break;
    if (count++ > 0) text += ", ";
    text += name;
  }
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

}  // namespace paceline
