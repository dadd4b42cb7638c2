#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace paceline {

namespace {

constexpr int kAlphabetEnd = 256 + 68;  // code points in use lie below

struct Alphabet {
  std::array<uint16_t, 256> code_of{};          // by byte
  std::array<int16_t, kAlphabetEnd> byte_of{};  // by code point, -1 outside
};

constexpr Alphabet make_alphabet() {
  Alphabet a;
  a.byte_of.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    const int code = printable ? byte : next++;
    a.code_of[static_cast<size_t>(byte)] = static_cast<uint16_t>(code);
    a.byte_of[static_cast<size_t>(code)] = static_cast<int16_t>(byte);
  }
  return a;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string written;
  for (char byte : bytes) append_utf8(kAlphabet.code_of[static_cast<uint8_t>(byte)], written);
  return written;
}

std::optional<std::string> from_byte_alphabet(std::string_view written) {
  std::string bytes;
  for (size_t pos = 0; pos < written.size();) {
    const Utf8Char c = read_utf8(written, pos);
    if (c.kind != Utf8Kind::Valid || c.code >= kAlphabetEnd) return std::nullopt;
    const int byte = kAlphabet.byte_of[c.code];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    pos += static_cast<size_t>(c.length);
  }
  return bytes;
}

}  // namespace paceline
