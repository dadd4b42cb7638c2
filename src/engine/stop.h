// Stop strings in a text that comes in pieces.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Finds the first place where a stop string completes, byte by byte, so that the result does not
// depend on where tokens or blocks end; of several that complete at the same byte the longest
// counts. What may still become a stop string is held back: the longest end of the text that is the
// beginning of one. Knuth, Morris and Pratt 1977, once for each string.
class StopScanner {
 public:
  explicit StopScanner(std::span<const std::string> stops);  // none of them empty

  // text: everything so far. Reads what is new in it and returns how many of its bytes are certain:
  // all but what is held back, or, once stopped, all before the stop string. Allocates nothing.
  size_t scan(std::string_view text);
  bool stopped() const { return stopped_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> border;  // border[n]: longest proper prefix of text[0, n) that ends it
    size_t matched = 0;          // bytes of `text` that the text so far ends with
  };
  void read(char byte);

  std::vector<Pattern> patterns_;
  size_t n_read_ = 0;
  size_t certain_ = 0;
  bool stopped_ = false;
};

}  // namespace paceline
