#include "text/json_scan.h"

#include <charconv>

#include "text/utf8.h"

namespace paceline {

namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::optional<uint32_t> hex4(std::string_view text, size_t pos) {
  if (pos + 4 > text.size()) return std::nullopt;
  uint32_t code = 0;
  const char* const begin = text.data() + pos;
  const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
  if (error != std::errc() || end != begin + 4) return std::nullopt;
  return code;
}

// One \uXXXX, or the two of a surrogate pair, whose digits stand at text[pos]; moves pos behind.
bool append_escaped_code(std::string_view text, size_t& pos, std::string& out) {
  const auto code = hex4(text, pos);
  if (!code) return false;
  pos += 4;
  if (*code < 0xD800 || *code > 0xDFFF) {
    append_utf8(*code, out);
    return true;
  }
  if (*code < 0xDC00 && text.substr(pos, 2) == "\\u") {
    const auto low = hex4(text, pos + 2);
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
      append_utf8(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00), out);
      pos += 6;
      return true;
    }
  }
  out += kReplacement;
  return true;
}

}  // namespace

std::string_view JsonScan::fail() {
  failed_ = true;
  pos_ = source_.size();
  return {};
}

void JsonScan::skip_blanks() {
  while (pos_ < source_.size() && is_blank(source_[pos_])) ++pos_;
}

bool JsonScan::expect(char c) {
  if (stands(c)) {
    ++pos_;
    return true;
  }
  fail();
  return false;
}

bool JsonScan::at_end() {
  skip_blanks();
  return pos_ == source_.size();
}

bool JsonScan::stands(char c) {
  skip_blanks();
  return pos_ < source_.size() && source_[pos_] == c;
}
bool JsonScan::is_text() { return stands('"'); }
bool JsonScan::is_list() { return stands('['); }
bool JsonScan::is_object() { return stands('{'); }

bool JsonScan::enter(char bracket) {
  first_ = true;
  return expect(bracket);
}

bool JsonScan::next(char closing) {
  skip_blanks();
  if (failed_ || pos_ == source_.size()) {
    fail();
    return false;
  }
  if (source_[pos_] == closing) {
    ++pos_;
    first_ = false;  // of the list around this one, an entry has been read
    return false;
  }
  if (!first_ && !expect(',')) return false;
  first_ = false;
  return true;
}

std::string_view JsonScan::key() {
  const std::string_view name = text();
  return expect(':') ? name : std::string_view();
}

// From the opening quote to behind the closing one.
bool JsonScan::skip_string() {
  if (!expect('"')) return false;
  while (pos_ < source_.size()) {
    const char c = source_[pos_];
    if (c == '"') {
      ++pos_;
      return true;
    }
    if (static_cast<uint8_t>(c) < 0x20) break;
    pos_ += c == '\\' ? 2 : 1;
  }
  fail();
  return false;
}

std::string_view JsonScan::text() {
  skip_blanks();
  const size_t begin = pos_ + 1;
  if (!skip_string()) return {};
  const std::string_view written = source_.substr(begin, pos_ - 1 - begin);
  if (written.find('\\') == written.npos) return written;
  std::string out;
  if (!unescape(written, out)) return fail();
  return unescaped_.emplace_back(std::move(out));
}

bool JsonScan::unescape(std::string_view escaped, std::string& out) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kChars = "\"\\/\b\f\n\r\t";
  for (size_t pos = 0; pos < escaped.size();) {
    const char c = escaped[pos++];
    if (c != '\\') {
      out += c;
      continue;
    }
    const char name = escaped[pos++];  // a string never ends in a lone backslash
    if (name == 'u') {
      if (!append_escaped_code(escaped, pos, out)) return false;
    } else if (const size_t at = kNames.find(name); at != kNames.npos) {
      out += kChars[at];
    } else {
      return false;
    }
  }
  return true;
}

std::optional<int64_t> JsonScan::integer() {
  const std::string_view written = value();
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(written.data(), written.data() + written.size(), number);
  if (written.empty() || error != std::errc() || end != written.data() + written.size())
    return std::nullopt;
  return number;
}

std::string_view JsonScan::value() {
  skip_blanks();
  const size_t begin = pos_;
  std::string open;  // brackets to be closed
  do {
    skip_blanks();
    if (pos_ == source_.size()) return fail();
    const char c = source_[pos_];
    if (c == '"') {
      if (!skip_string()) return {};
    } else if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
      ++pos_;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != c) return fail();
      open.pop_back();
      ++pos_;
    } else if (!open.empty() && (c == ',' || c == ':')) {
      ++pos_;
    } else {  // a number, true, false or null
      const size_t word = pos_;
      while (pos_ < source_.size() && !is_blank(source_[pos_]) &&
             std::string_view(",:\"{}[]").find(source_[pos_]) == std::string_view::npos)
        ++pos_;
      if (pos_ == word) return fail();
    }
  } while (!open.empty());
  return source_.substr(begin, pos_ - begin);
}

}  // namespace paceline
