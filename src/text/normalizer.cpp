#include "text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>

#include "base/check.h"
#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace paceline {

namespace {

// Where from `pos` on a character stands that NFC may touch: none below U+0300 is one.
size_t first_composable(std::string_view text, size_t pos) {
  constexpr uint8_t kLeadOfU0300 = 0xCC;
  while (pos < text.size() && static_cast<uint8_t>(text[pos]) < kLeadOfU0300) ++pos;
  return pos;
}

// Whether a character that joins nothing by the reference's tables is a mark for utf8proc: nothing
// may join it either.
bool is_younger_mark(uint32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class != 0;
}

void append_composed(std::string_view text, std::string& out) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  check(length >= 0, "utf8proc refuses valid UTF-8");
  out.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
  std::free(composed);
}

void append_replaced(std::string_view text, const NormalizeStep& step, std::string& out) {
  size_t pos = 0;
  for (size_t at = text.find(step.from); at != text.npos; at = text.find(step.from, pos)) {
    out += text.substr(pos, at - pos);
    out += step.to;
    pos = at + step.from.size();
  }
  out += text.substr(pos);
}

}  // namespace

// In pieces of one character and those that may join it, so that the tables of the reference decide
// what joins: a mark that is younger than they are stays where it is.
void append_nfc(std::string_view text, std::string& out) {
  const UnicodeClasses& classes = UnicodeClasses::get();
  size_t done = 0;   // what lies before is in `out`
  size_t first = 0;  // the character that those at `pos` may join
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<uint8_t>(text[pos]) < 0x80) {
      const size_t next = first_composable(text, pos);
      first = next - 1;
      while (first > pos && (static_cast<uint8_t>(text[first]) & 0xC0) == 0x80) --first;
      pos = next;
      if (pos == text.size()) break;
    }
    const Utf8Char c = read_utf8(text, pos);
    const uint16_t touched = classes.of(c.code) & (kNfcJoins | kNfcChanges);
    const size_t end = pos + static_cast<size_t>(c.length);
    if (!(touched & kNfcJoins)) first = is_younger_mark(c.code) ? end : pos;
    pos = end;
    if (!touched) continue;
    while (pos < text.size()) {
      const Utf8Char next = read_utf8(text, pos);
      if (!(classes.of(next.code) & kNfcJoins)) break;
      pos += static_cast<size_t>(next.length);
    }
    out += text.substr(done, first - done);
    append_composed(text.substr(first, pos - first), out);
    done = first = pos;
  }
  out += text.substr(done);
}

std::string_view Normalizer::apply(std::string_view text, std::string& room) const {
  for (const NormalizeStep& step : steps_) {
    std::string out;
    switch (step.kind) {
      case NormalizeStep::Kind::Nfc:
        if (first_composable(text, 0) == text.size()) continue;
        out.reserve(text.size());
        append_nfc(text, out);
        break;
      case NormalizeStep::Kind::Replace:
        if (text.find(step.from) == text.npos) continue;
        out.reserve(text.size() + text.size() / 2);
        append_replaced(text, step, out);
        break;
      case NormalizeStep::Kind::Prepend:
        if (text.empty()) continue;
        out.reserve(step.to.size() + text.size());
        out = step.to;
        out += text;
        break;
    }
    room.swap(out);
    text = room;
  }
  return text;
}

}  // namespace paceline
