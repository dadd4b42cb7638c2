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
  std::u16string flat(0x110000, u'\0');
  const auto mark = [&](std::span<const CodeRange> ranges, uint16_t bit) {
    for (const CodeRange& range : ranges)
      for (uint32_t code = range.first; code <= range.last; ++code)
        flat[code] = static_cast<char16_t>(flat[code] | bit);
  };
  mark(table::kLetters, kLetter);
  mark(table::kNumbers, kNumber);
  mark(table::kSpaces, kSpace);
  mark(table::kDigitStep, kDigitStep);
  mark(table::kMarks, kMark);
  mark(table::kUpperCase, kUpper);
  mark(table::kLowerCase, kLower);
  mark(table::kWords, kWord);
  mark(table::kNfcChanges, kNfcChanges);
  mark(table::kNfcJoins, kNfcJoins);

  // Equal pages are kept once; there are about 200 kinds of them.
  std::map<std::u16string, uint8_t> known = {{std::u16string(256, u'\0'), 0}};
  for (int page = 0; page < kPages; ++page) {
    const std::u16string cells = flat.substr(static_cast<size_t>(page) * 256, 256);
    const auto [entry, is_new] = known.try_emplace(cells, static_cast<uint8_t>(known.size()));
    check(known.size() <= 256, "the Unicode classes need more than 256 kinds of pages");
    if (is_new) std::copy(cells.begin(), cells.end(), cells_ + entry->second * 256);
    pages_[page] = entry->second;
  }
}

}  // namespace paceline
