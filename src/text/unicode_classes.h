// The Unicode classes that pre-tokenizers cut by: letters (L), numbers (N), white space.
#pragma once

#include <cstdint>

namespace paceline {

inline constexpr uint8_t kLetter = 1;
inline constexpr uint8_t kNumber = 2;     // \p{N} of the patterns
inline constexpr uint8_t kSpace = 4;      // \s of the patterns
inline constexpr uint8_t kDigitStep = 8;  // what the step Digits takes for a digit

// A lookup of two loads. The tables are those of the tokenizers library (Unicode 16 for the
// patterns, 17 for Digits), not of whatever library this machine has.
class UnicodeClasses {
 public:
  static const UnicodeClasses& get();
  // A set of the constants above; 0 for all else: punctuation, marks, controls.
  uint8_t of(uint32_t code) const { return cells_[pages_[code >> 8] * 256 + (code & 0xFF)]; }

 private:
  static constexpr int kPages = 0x110000 >> 8;
  UnicodeClasses();
  uint8_t pages_[kPages] = {};  // page 0 of cells_ is all zero
  uint8_t cells_[256 * 256] = {};
};

}  // namespace paceline
