#include "text/unicode_classes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "base/check.h"

namespace paceline {

namespace {

struct CodeRange {
  uint32_t first, last;
};

namespace table {
#include "text/unicode_classes.inc"
}  // namespace table

}  // namespace

const UnicodeClasses& UnicodeClasses::get() {
  static const UnicodeClasses classes;
  return classes;
}

UnicodeClasses::UnicodeClasses() {
  std::string flat(0x110000, '\0');
  const auto mark = [&](std::span<const CodeRange> ranges, uint8_t bit) {
    for (const CodeRange& range : ranges)
      for (uint32_t code = range.first; code <= range.last; ++code)
        flat[code] = static_cast<char>(flat[code] | bit);
  };
  mark(table::kLetters, kLetter);
  mark(table::kNumbers, kNumber);
  mark(table::kSpaces, kSpace);
  mark(table::kDigitStep, kDigitStep);

  // Equal pages are kept once; there are about 160 kinds of them.
  std::map<std::string, uint8_t> known = {{std::string(256, '\0'), 0}};
  for (int page = 0; page < kPages; ++page) {
    const std::string cells = flat.substr(static_cast<size_t>(page) * 256, 256);
    const auto [entry, is_new] = known.try_emplace(cells, static_cast<uint8_t>(known.size()));
    check(known.size() <= 256, "the Unicode classes need more than 256 kinds of pages");
    if (is_new) std::copy(cells.begin(), cells.end(), cells_ + entry->second * 256);
    pages_[page] = entry->second;
  }
}

}  // namespace paceline
