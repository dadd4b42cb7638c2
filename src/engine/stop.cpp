#include "engine/stop.h"

#include <algorithm>

namespace paceline {

StopScanner::StopScanner(std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    Pattern pattern{.text = stop, .border = std::vector<size_t>(stop.size() + 1, 0)};
    size_t border = 0;
    for (size_t n = 1; n < stop.size(); ++n) {
      while (border > 0 && stop[n] != stop[border]) border = pattern.border[border];
      if (stop[n] == stop[border]) ++border;
      pattern.border[n + 1] = border;
    }
    patterns_.push_back(std::move(pattern));
  }
}

void StopScanner::read(char byte) {
  ++n_read_;
  size_t held = 0;  // longest beginning of a stop string that the text ends with
  for (Pattern& p : patterns_) {
    while (p.matched > 0 && p.text[p.matched] != byte) p.matched = p.border[p.matched];
    if (p.text[p.matched] == byte) ++p.matched;
    held = std::max(held, p.matched);
    if (p.matched == p.text.size()) stopped_ = true;
  }
  if (stopped_) {
    held = 0;
    for (const Pattern& p : patterns_) {
      if (p.matched == p.text.size()) held = std::max(held, p.matched);
    }
  }
  certain_ = n_read_ - held;
}

size_t StopScanner::scan(std::string_view text) {
  if (patterns_.empty()) return text.size();
  while (!stopped_ && n_read_ < text.size()) read(text[n_read_]);
  return certain_;
}

}  // namespace paceline
