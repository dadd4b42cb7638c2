#include "io/part_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace paceline {
namespace {

constexpr size_t kDigits = 5;

std::optional<int> five_digits(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != kDigits || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string PartName::text() const {
  return fmt::format("{}-{:05}-of-{:05}{}", stem, number, count, ending);
}

PartName PartName::with(int other) const {
  PartName part = *this;
  part.number = other;
  return part;
}

bool PartName::same_set(const PartName& other) const {
  return stem == other.stem && ending == other.ending && count == other.count;
}

std::optional<PartName> PartName::of(std::string_view file) {
  const size_t dot = file.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view base = file.substr(0, dot);
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits;  // "-00001-of-00002"
  if (base.size() < kTail) return std::nullopt;
  const std::string_view tail = base.substr(base.size() - kTail);
  const auto number = five_digits(tail.substr(1, kDigits));
  const auto count = five_digits(tail.substr(kTail - kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !number || !count ||
      *number < 1 || *number > *count) {
    return std::nullopt;
  }
  return PartName{.stem = std::string(base.substr(0, base.size() - kTail)),
                  .ending = std::string(file.substr(dot)),
                  .number = *number,
                  .count = *count};
}

}  // namespace paceline
