#include "text/pretokenizer.h"

#include "base/check.h"
#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace paceline {

namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr uint8_t kWordClass = kLetter | kNumber | kSpace;

struct Char {
  uint8_t classes = 0;
  int length = 0;
  uint32_t code = 0;
};

Char char_at(std::string_view text, size_t pos) {
  const Utf8Char c = read_utf8(text, pos);
  return {UnicodeClasses::get().of(c.code), c.length, c.code};
}

// The end of the run of characters whose classes, under `mask`, equal `wanted`.
size_t run_end(std::string_view text, size_t pos, uint8_t mask, uint8_t wanted) {
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if ((c.classes & mask) != wanted) break;
    pos += static_cast<size_t>(c.length);
  }
  return pos;
}
size_t letters_end(std::string_view text, size_t pos) {
  return run_end(text, pos, kLetter, kLetter);
}
size_t numbers_end(std::string_view text, size_t pos) {
  return run_end(text, pos, kNumber, kNumber);
}
size_t others_end(std::string_view text, size_t pos) { return run_end(text, pos, kWordClass, 0); }

// \s+(?!\S)|\s+ where white space stands at pos: a run that something follows leaves its last
// character to that something, unless it is the only one.
size_t spaces_end(std::string_view text, size_t pos) {
  size_t last = pos;
  size_t end = pos;
  while (end < text.size()) {
    const Char c = char_at(text, end);
    if (!(c.classes & kSpace)) break;
    last = end;
    end += static_cast<size_t>(c.length);
  }
  return end == text.size() || last == pos ? end : last;
}

// The letter at text[pos] without its case; U+017F, the long s, folds to s as it does in the
// reference. Sets `length` to its bytes; 0 where no letter of a contraction stands.
char folded(std::string_view text, size_t pos, size_t& length) {
  length = 0;
  if (pos >= text.size()) return 0;
  const Char c = char_at(text, pos);
  length = static_cast<size_t>(c.length);
  if (c.code == 0x17F) return 's';
  if (c.code >= 0x80) return 0;
  return static_cast<char>(c.code >= 'A' && c.code <= 'Z' ? c.code + 32 : c.code);
}

// 's 't 're 've 'm 'll 'd at pos; pos itself where there is none.
size_t contraction_end(std::string_view text, size_t pos, bool any_case) {
  if (text[pos] != '\'' || pos + 1 == text.size()) return pos;
  size_t n = 1;
  size_t m = 1;
  const char a = any_case ? folded(text, pos + 1, n) : text[pos + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return pos + 1 + n;
  if (n != 1 || pos + 2 >= text.size()) return pos;
  const char b = any_case ? folded(text, pos + 2, m) : text[pos + 2];
  const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
  return two ? pos + 2 + m : pos;
}

size_t gpt2_cut(std::string_view text, size_t pos) {
  if (const size_t end = contraction_end(text, pos, false); end != pos) return end;

  // " ?" joins one blank to whatever comes next, but not to more white space.
  const size_t start = pos + (text[pos] == ' ' && pos + 1 < text.size() ? 1 : 0);
  const uint8_t classes = char_at(text, start).classes & kWordClass;
  if (classes == kLetter) return letters_end(text, start);
  if (classes == kNumber) return numbers_end(text, start);
  if (classes == 0) return others_end(text, start);
  return spaces_end(text, pos);
}

size_t llama3_cut(std::string_view text, size_t pos, int max_digits) {
  if (const size_t end = contraction_end(text, pos, true); end != pos) return end;

  const Char first = char_at(text, pos);
  const size_t second = pos + static_cast<size_t>(first.length);
  if (first.classes & kLetter) return letters_end(text, pos);
  if (first.classes & kNumber) {
    size_t end = second;
    for (int n = 1; n < max_digits && end < text.size(); ++n) {
      const Char c = char_at(text, end);
      if (!(c.classes & kNumber)) break;
      end += static_cast<size_t>(c.length);
    }
    return end;
  }
  const bool breaks_line = first.code == '\r' || first.code == '\n';
  if (!breaks_line && second < text.size() && (char_at(text, second).classes & kLetter))
    return letters_end(text, second);

  const size_t start = first.code == ' ' && second < text.size() ? second : pos;
  if ((char_at(text, start).classes & kWordClass) == 0) {
    size_t end = others_end(text, start);
    while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
    return end;
  }
  // \s*[\r\n]+ reaches to the last line end of the white space.
  const size_t run = run_end(text, pos, kSpace, kSpace);
  const size_t line_end = text.substr(pos, run - pos).find_last_of("\r\n");
  return line_end != std::string_view::npos ? pos + line_end + 1 : spaces_end(text, pos);
}

size_t digits_cut(std::string_view text, size_t pos) {
  const Char first = char_at(text, pos);
  if (first.classes & kDigitStep) return pos + static_cast<size_t>(first.length);
  return run_end(text, pos, kDigitStep, 0);
}

}  // namespace

Result<CutStep> cut_step_of_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return CutStep::Gpt2;
  if (pattern == kLlama3Pattern) return CutStep::Llama3;
  if (pattern == kQwen2Pattern) return CutStep::Qwen2;
  return Error{ErrorCode::Unsupported, "the split pattern \"" + std::string(pattern) +
                                           "\" is not known; known are those of GPT-2, Llama 3 "
                                           "and Qwen2"};
}

Result<std::vector<CutStep>> cut_steps_of_pre(std::string_view pre) {
  using Steps = std::vector<CutStep>;
  if (pre == "gpt-2") return Steps{CutStep::Gpt2};
  if (pre == "smollm") return Steps{CutStep::Digits, CutStep::Gpt2};
  if (pre == "llama-bpe") return Steps{CutStep::Llama3};
  if (pre == "qwen2") return Steps{CutStep::Qwen2};
  return Error{ErrorCode::Unsupported, "the pre-tokenizer \"" + std::string(pre) +
                                           "\" is not known; known are gpt-2, smollm, llama-bpe "
                                           "and qwen2"};
}

size_t next_cut(CutStep step, std::string_view text, size_t pos) {
  switch (step) {
    case CutStep::Digits:
      return digits_cut(text, pos);
    case CutStep::Gpt2:
      return gpt2_cut(text, pos);
    case CutStep::Llama3:
      return llama3_cut(text, pos, 3);
    case CutStep::Qwen2:
      return llama3_cut(text, pos, 1);
    case CutStep::PrefixSpace:
      break;
  }
  check(false, "a prefix space cuts nothing");
  return text.size();
}

}  // namespace paceline
