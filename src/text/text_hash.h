// The hash that tables of words and tokens share.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace paceline {

// A hash of short texts, eight bytes at a time.
inline uint64_t hash_of_text(std::string_view text) {
  uint64_t hash = text.size() * 0x9E3779B97F4A7C15u;
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, text.size() - i < 8 ? text.size() - i : 8);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace paceline
