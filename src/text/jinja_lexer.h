// Chat template source to tokens, white space control applied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline::jinja {

enum class Lex {
  Data,      // text between tags
  TagBegin,  // {%
  TagEnd,
  OutBegin,  // {{
  OutEnd,
  Name,
  String,  // its value, escapes resolved
  Int,
  Float,
  Op,  // + - * / // % ** ~ == != < <= > >= = . , : | ( ) [ ] { }
  End,
};

struct Token {
  Lex kind = Lex::End;
  std::string text;
  int line = 1;
};

// Cuts `source` as Jinja does with trim_blocks and lstrip_blocks set, which is how chat templates
// are rendered: a line end behind a tag or comment goes, and so do blanks before one that starts
// its line; "-" takes all white space on its side, "+" keeps it. One line end at the very end of
// the source is dropped.
Result<std::vector<Token>> lex(std::string_view source);

// An error at a line of the template.
Error at_line(ErrorCode code, int line, std::string_view message);

}  // namespace paceline::jinja
