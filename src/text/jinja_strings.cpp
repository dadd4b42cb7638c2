#include "text/jinja_strings.h"

#include <utf8proc.h>

#include "text/utf8.h"

namespace paceline::jinja {

namespace {

// str.isspace(): the separators of Unicode and the controls that Python counts with them.
bool is_python_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool contains_char(std::string_view chars, uint32_t code) {
  for (size_t pos = 0; pos < chars.size();) {
    const Utf8Char c = read_utf8(chars, pos);
    if (c.code == code) return true;
    pos += static_cast<size_t>(c.length);
  }
  return false;
}

size_t previous_char(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

}  // namespace

Text stripped(const Text& text, std::optional<std::string_view> chars, Side side) {
  const auto goes = [&](size_t pos) {
    const uint32_t code = read_utf8(text.bytes, pos).code;
    return chars ? contains_char(*chars, code) : is_python_space(code);
  };
  size_t begin = 0;
  size_t end = text.size();
  while (side != Side::Right && begin < end && goes(begin))
    begin += static_cast<size_t>(read_utf8(text.bytes, begin).length);
  while (side != Side::Left && begin < end) {
    const size_t last = previous_char(text.bytes, end);
    if (!goes(last)) break;
    end = last;
  }
  return text.part(begin, end - begin);
}

Text with_case(const Text& text, Case which) {
  Text out;
  bool in_word = false;  // the character before was a letter
  bool behind_gap = true;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = read_utf8(text.bytes, pos);
    const auto code = static_cast<utf8proc_int32_t>(c.code);
    const utf8proc_int32_t upper = utf8proc_toupper(code);
    const utf8proc_int32_t lower = utf8proc_tolower(code);
    const bool is_cased = upper != lower;
    const bool starts = which == Case::Title   ? is_cased && !in_word
                        : which == Case::Words ? behind_gap
                                               : pos == 0;
    const utf8proc_int32_t wanted = which == Case::Upper   ? upper
                                    : which == Case::Lower ? lower
                                    : starts               ? utf8proc_totitle(code)
                                                           : lower;
    in_word = is_cased;
    behind_gap = is_python_space(c.code) || contains_char("-({[<", c.code);
    std::string written;
    append_utf8(static_cast<uint32_t>(wanted), written);
    out.append(written, text.from_user[pos] != 0);
    pos += static_cast<size_t>(c.length);
  }
  return out;
}

Text replaced(Context& context, const Text& text, const Text& from, const Text& to,
              std::optional<int64_t> limit) {
  int64_t left = limit && *limit >= 0 ? *limit : INT64_MAX;
  Text out;
  size_t pos = 0;
  while (left > 0) {
    size_t found = pos;
    if (from.size() > 0) {
      found = text.bytes.find(from.bytes, pos);
      if (found == std::string::npos) break;
      out.append(text.part(pos, found - pos));
    }
    --left;
    if (!context.spend(to.size())) return {};
    out.append(to);
    pos = found + from.size();
    if (from.size() > 0) continue;
    if (pos == text.size()) break;
    const auto n = static_cast<size_t>(read_utf8(text.bytes, pos).length);
    out.append(text.part(pos, n));
    pos += n;
  }
  if (pos < text.size()) out.append(text.part(pos));
  if (!context.spend(out.size())) return {};
  return out;
}

Value split(Context& context, const Text& text, std::optional<std::string_view> separator,
            std::optional<int64_t> limit) {
  if (separator && separator->empty())
    return context.fail(ErrorCode::BadFormat, "split has an empty separator");
  int64_t left = limit && *limit >= 0 ? *limit : INT64_MAX;
  std::vector<Value> parts;
  const auto push = [&](Text part) {
    parts.emplace_back(std::move(part));
    return context.spend(kWorkPerItem);
  };
  if (separator) {
    size_t pos = 0;
    for (; left > 0; --left) {
      const size_t found = text.bytes.find(*separator, pos);
      if (found == std::string::npos) break;
      if (!push(text.part(pos, found - pos))) return {};
      pos = found + separator->size();
    }
    push(text.part(pos));
    return make_list(context, std::move(parts));
  }
  size_t pos = 0;
  while (true) {
    while (pos < text.size()) {  // white space between words
      const Utf8Char c = read_utf8(text.bytes, pos);
      if (!is_python_space(c.code)) break;
      pos += static_cast<size_t>(c.length);
    }
    if (pos == text.size()) break;
    size_t end = pos;
    while (end < text.size() && left > 0) {
      const Utf8Char c = read_utf8(text.bytes, end);
      if (is_python_space(c.code)) break;
      end += static_cast<size_t>(c.length);
    }
    if (left == 0) {  // the rest is one part
      push(text.part(pos));
      break;
    }
    --left;
    if (!push(text.part(pos, end - pos))) return {};
    pos = end;
  }
  return make_list(context, std::move(parts));
}

Value split_lines(Context& context, const Text& text) {
  const auto ends_line = [](uint32_t code) {
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
  };
  std::vector<Value> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = read_utf8(text.bytes, pos);
    size_t next = pos + static_cast<size_t>(c.length);
    if (ends_line(c.code)) {
      if (c.code == '\r' && next < text.size() && text.bytes[next] == '\n') ++next;
      if (!context.spend(kWorkPerItem)) return {};
      lines.emplace_back(text.part(begin, pos - begin));
      begin = next;
    }
    pos = next;
  }
  if (begin < text.size()) lines.emplace_back(text.part(begin));
  return make_list(context, std::move(lines));
}

}  // namespace paceline::jinja
