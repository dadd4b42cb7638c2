// The Unicode classes that tokenizers look at: what patterns cut by, what NFC may change.
#pragma once

#include <cstdint>

namespace paceline {

inline constexpr uint16_t kLetter = 1;     // \p{L} of the patterns
inline constexpr uint16_t kNumber = 2;     // \p{N}
inline constexpr uint16_t kSpace = 4;      // \s
inline constexpr uint16_t kDigitStep = 8;  // what the step Digits takes for a digit
inline constexpr uint16_t kMark = 16;      // \p{M}
inline constexpr uint16_t kUpper = 32;     // \p{Lu} and \p{Lt}; letters that are neither this nor
inline constexpr uint16_t kLower = 64;     // \p{Ll} are \p{Lm} or \p{Lo}
inline constexpr uint16_t kWord = 128;     // \w as single_word of an added token sees it
inline constexpr uint16_t kNfcChanges = 256;  // NFC turns it into something else
inline constexpr uint16_t kNfcJoins = 512;  // NFC may join it to, or move it before, what precedes

// A lookup of two loads. The tables are those of the tokenizers library (Unicode 16 for the
// patterns, 17 for Digits, an older one for NFC), not of whatever library this machine has.
class UnicodeClasses {
 public:
  static const UnicodeClasses& get();
  // A set of the constants above; 0 for all else, such as punctuation and controls.
  uint16_t of(uint32_t code) const { return cells_[pages_[code >> 8] * 256 + (code & 0xFF)]; }

 private:
  static constexpr int kPages = 0x110000 >> 8;
  UnicodeClasses();
  uint8_t pages_[kPages] = {};  // page 0 of cells_ is all zero
  uint16_t cells_[256 * 256] = {};
};

}  // namespace paceline
