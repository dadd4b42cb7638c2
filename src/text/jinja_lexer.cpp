#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "text/utf8.h"

namespace paceline::jinja {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

std::string with_plain_line_ends(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

int digit_of(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(with_plain_line_ends(source)) {}

  Result<std::vector<Token>> run() {
    while (pos_ < text_.size() && !error_) read_data();
    if (error_) return *error_;
    push(Lex::End, "");
    return std::move(tokens_);
  }

 private:
  char at(size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }
  bool starts(size_t pos, std::string_view what) const {
    return std::string_view(text_).substr(std::min(pos, text_.size())).starts_with(what);
  }
  void push(Lex kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void fail(std::string_view message) {
    if (!error_) error_ = at_line(ErrorCode::BadFormat, line_, message);
  }
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(pos_),
                                         text_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    line_starts_ = to > pos_ ? text_[to - 1] == '\n' : line_starts_;
    pos_ = to;
  }
  void skip_space() {
    size_t to = pos_;
    while (to < text_.size() && is_space(text_[to])) ++to;
    advance(to);
  }

  // Text up to the next tag, without what that tag's white space control takes away.
  void push_data(size_t end, char sign, bool is_output) {
    size_t keep = end;
    if (sign == '-') {
      while (keep > pos_ && is_space(text_[keep - 1])) --keep;
    } else if (sign != '+' && !is_output) {
      size_t blank = end;
      while (blank > pos_ && is_space(text_[blank - 1]) && text_[blank - 1] != '\n') --blank;
      if (blank > pos_ ? text_[blank - 1] == '\n' : line_starts_) keep = blank;
    }
    if (keep > pos_) push(Lex::Data, text_.substr(pos_, keep - pos_));
    advance(end);
  }

  void read_data() {
    size_t open = pos_;
    while (open < text_.size() &&
           !(text_[open] == '{' &&
             (at(open + 1) == '%' || at(open + 1) == '{' || at(open + 1) == '#')))
      ++open;
    if (open == text_.size()) return push_data(open, '+', false);

    const char kind = text_[open + 1];
    const char sign = at(open + 2);
    push_data(open, sign, kind == '{');
    advance(open + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    push(kind == '%' ? Lex::TagBegin : Lex::OutBegin, "");
    read_inside(kind == '%');
  }

  // The white space rule behind a tag's end, whose closing characters start at `close`.
  void close_tag(size_t close, size_t length, bool is_output) {
    const char sign = text_[close];
    advance(close + length);
    if (sign == '-')
      skip_space();
    else if (sign != '+' && !is_output && at(pos_) == '\n')
      advance(pos_ + 1);
  }

  void read_comment() {
    const size_t close = text_.find("#}", pos_);
    if (close == std::string::npos) return fail("a comment {# is not closed");
    const bool has_sign = close > pos_ && (text_[close - 1] == '-' || text_[close - 1] == '+');
    close_tag(close - (has_sign ? 1 : 0), has_sign ? 3 : 2, false);
  }

  // {% raw %} ... {% endraw %}: whether it stands here; the tag's opening is behind us.
  bool read_raw() {
    const auto end_of = [this](size_t from, std::string_view word) {
      while (is_space(at(from))) ++from;
      if (!starts(from, word)) return std::string::npos;
      from += word.size();
      while (is_space(at(from))) ++from;
      return from;
    };
    const size_t head = end_of(pos_, "raw");
    if (head == std::string::npos || !(starts(head, "%}") || starts(head, "-%}"))) return false;
    if (text_[head] == '-') {
      advance(head + 3);
      skip_space();
    } else {
      advance(head + 2);
    }
    for (size_t open = text_.find("{%", pos_); open != std::string::npos;
         open = text_.find("{%", open + 2)) {
      const char sign = at(open + 2);
      const size_t close = end_of(open + (sign == '-' || sign == '+' ? 3 : 2), "endraw");
      if (close == std::string::npos) continue;
      const bool has_sign = at(close) == '-' || at(close) == '+';
      if (!starts(close + (has_sign ? 1 : 0), "%}")) continue;
      push_data(open, sign, false);
      close_tag(close, has_sign ? 3 : 2, false);
      return true;
    }
    fail("{% raw %} has no {% endraw %}");
    return true;
  }

  void read_inside(bool is_tag) {
    const std::string_view end = is_tag ? "%}" : "}}";
    std::string open_brackets;
    while (!error_) {
      skip_space();
      if (pos_ == text_.size()) return fail(is_tag ? "{% is not closed" : "{{ is not closed");
      if (open_brackets.empty()) {
        const bool has_sign = at(pos_) == '-' || (is_tag && at(pos_) == '+');
        if (starts(pos_ + (has_sign ? 1 : 0), end)) {
          push(is_tag ? Lex::TagEnd : Lex::OutEnd, "");
          return close_tag(pos_, has_sign ? 3 : 2, !is_tag);
        }
      }
      const char c = text_[pos_];
      if (is_name_start(c)) {
        size_t to = pos_;
        while (is_name(at(to))) ++to;
        push_and_advance(Lex::Name, to);
      } else if (is_digit(c)) {
        read_number();
      } else if (c == '\'' || c == '"') {
        read_string(c);
      } else {
        read_operator(open_brackets);
      }
    }
  }

  void push_and_advance(Lex kind, size_t to) {
    push(kind, text_.substr(pos_, to - pos_));
    advance(to);
  }

  void read_number() {
    size_t to = pos_;
    bool is_float = false;
    const auto digits = [&] {
      while (is_digit(at(to))) ++to;
    };
    digits();
    const bool behind_dot = !tokens_.empty() && tokens_.back().text == "." &&
                            tokens_.back().kind == Lex::Op;  // messages.0 is an index
    if (!behind_dot && at(to) == '.' && is_digit(at(to + 1))) {
      is_float = true;
      ++to;
      digits();
    }
    if (!behind_dot && (at(to) == 'e' || at(to) == 'E')) {
      const size_t sign = at(to + 1) == '+' || at(to + 1) == '-' ? 1 : 0;
      if (is_digit(at(to + 1 + sign))) {
        is_float = true;
        to += 1 + sign;
        digits();
      }
    }
    if (is_name(at(to))) return fail("a number runs into a name");
    push_and_advance(is_float ? Lex::Float : Lex::Int, to);
  }

  void read_operator(std::string& open_brackets) {
    static constexpr std::array<std::string_view, 25> kOperators = {
        "//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
        ">",  "=",  ".",  ",",  ":",  "|",  "(", ")", "[", "]", "{", "}"};
    const auto* const op = std::find_if(kOperators.begin(), kOperators.end(),
                                        [this](std::string_view o) { return starts(pos_, o); });
    if (op == kOperators.end())
      return fail(fmt::format(
          "the character \"{}\" has no meaning inside a tag",
          static_cast<uint8_t>(text_[pos_]) < 0x20
              ? "?"
              : text_.substr(pos_, static_cast<size_t>(read_utf8(text_, pos_).length))));
    const char c = (*op)[0];
    if (c == '(' || c == '[' || c == '{') {
      open_brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c)
        return fail(fmt::format("\"{}\" closes nothing", c));
      open_brackets.pop_back();
    }
    push_and_advance(Lex::Op, pos_ + op->size());
  }

  void read_string(char quote) {
    size_t to = pos_ + 1;
    std::string value;
    while (to < text_.size() && text_[to] != quote && !error_) {
      if (text_[to] == '\\' && to + 1 < text_.size())
        to = read_escape(to + 1, value);
      else
        value += text_[to++];
    }
    if (to >= text_.size()) return fail("a string is not closed");
    push(Lex::String, std::move(value));
    advance(to + 1);
  }

  // The escapes of Python; `pos` is behind the backslash. Returns where the string goes on.
  size_t read_escape(size_t pos, std::string& value) {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = text_[pos];
    if (c == '\n') return pos + 1;
    if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
      value += kTo[i];
      return pos + 1;
    }
    uint32_t code = 0;
    if (c >= '0' && c <= '7') {
      const size_t first = pos;
      while (pos < first + 3 && at(pos) >= '0' && at(pos) <= '7')
        code = code * 8 + static_cast<uint32_t>(text_[pos++] - '0');
      append_utf8(code, value);
      return pos;
    }
    const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (n == 0) {  // not an escape: both characters stand
      value += '\\';
      return pos;
    }
    for (size_t i = 1; i <= n; ++i) {
      const int digit = digit_of(at(pos + i));
      if (digit == 16) return fail(fmt::format("\\{} needs {} hex digits", c, n)), pos;
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return fail("an escape names no character"), pos;
    append_utf8(code, value);
    return pos + 1 + n;
  }

  std::string text_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // what stands at pos_ starts a line, white space control considered
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

Error at_line(ErrorCode code, int line, std::string_view message) {
  return {code, fmt::format("chat template, line {}: {}", line, message)};
}

Result<std::vector<Token>> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace paceline::jinja
