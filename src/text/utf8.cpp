#include "text/utf8.h"

#include <cstring>

namespace paceline {

namespace {

// Bytes of a character by its first byte and the range of the second (Unicode table 3-7).
struct Lead {
  int length = 0;  // 0: no character starts with this byte
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below would be overlong
  if (byte == 0xED) return {3, 0x80, 0x9F};  // above would be a surrogate
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // above would pass U+10FFFF
  return {};
}

// How many bytes from pos on are ASCII, counted in eights.
size_t skip_ascii(std::string_view text, size_t pos) {
  while (pos + 8 <= text.size()) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + pos, 8);
    if (word & 0x8080808080808080u) break;
    pos += 8;
  }
  return pos;
}

}  // namespace

Utf8Char read_utf8(std::string_view text, size_t pos) {
  const auto first = static_cast<uint8_t>(text[pos]);
  if (first < 0x80) return {Utf8Kind::Valid, 1, first};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {Utf8Kind::Invalid, 1, 0};

  uint32_t code = first & (0xFFu >> (lead.length + 1));
  for (int i = 1; i < lead.length; ++i) {
    if (pos + static_cast<size_t>(i) == text.size()) return {Utf8Kind::Incomplete, i, 0};
    const auto byte = static_cast<uint8_t>(text[pos + static_cast<size_t>(i)]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::Invalid, i, 0};
    code = code << 6 | (byte & 0x3Fu);
  }
  return {Utf8Kind::Valid, lead.length, code};
}

bool is_valid_utf8(std::string_view text) {
  for (size_t pos = skip_ascii(text, 0); pos < text.size();) {
    const Utf8Char c = read_utf8(text, pos);
    if (c.kind != Utf8Kind::Valid) return false;
    pos += static_cast<size_t>(c.length);
    if (c.length == 1) pos = skip_ascii(text, pos);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = read_utf8(text, pos);
    const auto length = static_cast<size_t>(c.length);
    out += c.kind == Utf8Kind::Valid ? text.substr(pos, length) : kReplacement;
    pos += length;
  }
  return out;
}

void append_utf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace paceline
