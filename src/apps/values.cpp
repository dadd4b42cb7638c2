#include "apps/values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "apps/say.h"
#include "io/shown.h"
#include "text/utf8.h"

namespace paceline::apps {
namespace {

// Control characters become spaces.
std::string one_line(std::string_view text) {
  std::string line = replace_invalid_utf8(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

}  // namespace

void warn(std::string_view text) { say(stderr, "warning: {}\n", one_line(text)); }

int fail(std::string_view command, const Error& error) {
  say(stderr, "paceline {}: {}\n", command, one_line(error.message));
  return error.code == ErrorCode::Interrupted ? kExitInterrupted : kExitBadInput;
}

Error wants(std::string_view wanted, std::string_view found) {
  return {ErrorCode::BadUsage, fmt::format("wants {}, not {}", wanted, quoted_name(found))};
}

Result<int64_t> parse_integer(std::string_view text, int64_t lowest, int64_t highest) {
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    if (highest == std::numeric_limits<int64_t>::max()) {
      return wants(fmt::format("a whole number, {} or more", lowest), text);
    }
    return wants(fmt::format("a whole number from {} to {}", lowest, highest), text);
  }
  return value;
}

Result<double> parse_number(std::string_view text, double lowest, double highest) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < lowest || value > highest) {
    return wants(fmt::format("a number from {} to {}", lowest, highest), text);
  }
  return value;
}

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  const auto bad = [&] { return wants("token ids such as 1,2,3", text); };
  const auto trim = [](std::string_view part) {
    const size_t first = part.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return std::string_view();
    return part.substr(first, part.find_last_not_of(" \t\r\n") - first + 1);
  };
  std::vector<TokenId> ids;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const auto id = parse_integer(trim(text.substr(begin, comma - begin)), 0,
                                  std::numeric_limits<TokenId>::max());
    if (!id) return bad();
    ids.push_back(static_cast<TokenId>(*id));
    begin = comma + 1;
  }
  return ids;
}

std::string join_ids(const std::vector<TokenId>& ids) {
  return fmt::format("{}", fmt::join(ids, ","));
}

}  // namespace paceline::apps
