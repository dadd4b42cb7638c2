#include "text/pretokenizer.h"

#include <algorithm>

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

constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBar = "\u2581";

constexpr uint16_t kWordClass = kLetter | kNumber | kSpace;

struct Char {
  uint16_t classes = 0;
  int length = 0;
  uint32_t code = 0;
};

Char char_at(std::string_view text, size_t pos) {
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return {UnicodeClasses::get().of(byte), 1, byte};
  const Utf8Char c = read_utf8(text, pos);
  return {UnicodeClasses::get().of(c.code), c.length, c.code};
}

// The end of the run of characters whose classes, under `mask`, equal `wanted`.
size_t run_end(std::string_view text, size_t pos, uint16_t mask, uint16_t wanted) {
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
  const uint16_t classes = char_at(text, start).classes & kWordClass;
  if (classes == kLetter) return letters_end(text, start);
  if (classes == kNumber) return numbers_end(text, start);
  if (classes == 0) return others_end(text, start);
  return spaces_end(text, pos);
}

size_t digits_end(std::string_view text, size_t pos, int max_digits) {
  for (int n = 0; n < max_digits && pos < text.size(); ++n) {
    const Char c = char_at(text, pos);
    if (!(c.classes & kNumber)) break;
    pos += static_cast<size_t>(c.length);
  }
  return pos;
}

// " ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", the common end of the newer patterns,
// where neither a letter nor a number stands at pos. `words`: classes that the first part leaves
// out; `tail`: what may follow its run.
size_t others_or_spaces_end(std::string_view text, size_t pos, uint16_t words,
                            std::string_view tail) {
  const size_t second = pos + 1;  // behind the blank
  const size_t start = text[pos] == ' ' && second < text.size() ? second : pos;
  if ((char_at(text, start).classes & words) == 0) {
    const size_t end = text.find_first_not_of(tail, run_end(text, start, words, 0));
    return end == text.npos ? text.size() : end;
  }
  // \s*[\r\n]+ reaches to the last line end of the white space.
  const size_t run = run_end(text, pos, kSpace, kSpace);
  const size_t line_end = text.substr(pos, run - pos).find_last_of("\r\n");
  return line_end != std::string_view::npos ? pos + line_end + 1 : spaces_end(text, pos);
}

bool breaks_line(const Char& c) { return c.code == '\r' || c.code == '\n'; }

size_t llama3_cut(std::string_view text, size_t pos, int max_digits) {
  if (const size_t end = contraction_end(text, pos, true); end != pos) return end;

  const Char first = char_at(text, pos);
  const size_t second = pos + static_cast<size_t>(first.length);
  if (first.classes & kLetter) return letters_end(text, second);
  if (first.classes & kNumber) return digits_end(text, second, max_digits - 1);
  if (!breaks_line(first) && second < text.size() && (char_at(text, second).classes & kLetter))
    return letters_end(text, second);
  return others_or_spaces_end(text, pos, kWordClass, "\r\n");
}

// As Llama 3's, but marks belong to words; one may also be what a word takes in front.
size_t qwen35_cut(std::string_view text, size_t pos) {
  if (const size_t end = contraction_end(text, pos, true); end != pos) return end;

  const auto word_end = [&](size_t from) {
    while (from < text.size()) {
      const Char c = char_at(text, from);
      if (!(c.classes & (kLetter | kMark))) break;
      from += static_cast<size_t>(c.length);
    }
    return from;
  };
  const Char first = char_at(text, pos);
  const size_t second = pos + static_cast<size_t>(first.length);
  if (first.classes & (kLetter | kMark)) return word_end(second);
  if (first.classes & kNumber) return second;
  if (!breaks_line(first))
    if (const size_t end = word_end(second); end != second) return end;
  return others_or_spaces_end(text, pos, kWordClass | kMark, "\r\n");
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and [\p{Ll}\p{Lm}\p{Lo}\p{M}]: a letter without case, or a mark,
// is in both.
bool in_upper(uint16_t classes) {
  return (classes & (kLetter | kMark)) != 0 && (classes & kLower) == 0;
}
bool in_lower(uint16_t classes) {
  return (classes & (kLetter | kMark)) != 0 && (classes & kUpper) == 0;
}

struct CasedWord {
  size_t end = 0;        // of upper* lower+; `from` where that does not match
  size_t end_upper = 0;  // of upper+ lower*, where the former does not match; else `from` too
};
// upper* takes all it can. Where no lower follows, it gives back as much as lower+ needs: up to the
// last character that is in both.
CasedWord cased_word(std::string_view text, size_t from) {
  size_t pos = from;
  size_t end_both = from;  // of that last character
  bool lower_follows = false;
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (!in_upper(c.classes)) {
      lower_follows = in_lower(c.classes);
      break;
    }
    pos += static_cast<size_t>(c.length);
    if (in_lower(c.classes)) end_both = pos;
  }
  if (!lower_follows) return {end_both, pos};
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (!in_lower(c.classes)) break;
    pos += static_cast<size_t>(c.length);
  }
  return {pos, from};
}

size_t gpt4o_cut(std::string_view text, size_t pos) {
  const Char first = char_at(text, pos);
  const size_t second = pos + static_cast<size_t>(first.length);
  const auto word = [&](size_t end) {
    return end < text.size() ? contraction_end(text, end, true) : end;
  };
  if (first.classes & kNumber) return digits_end(text, second, 2);
  // Four ways, in the order of the pattern: with the character in front or without it, for words
  // that end in lower case and then for those that do not.
  const bool may_lead = !breaks_line(first) && !(first.classes & kLetter);
  const CasedWord led = may_lead ? cased_word(text, second) : CasedWord{second, second};
  if (led.end != second) return word(led.end);
  const CasedWord bare =
      (first.classes & (kLetter | kMark)) ? cased_word(text, pos) : CasedWord{pos, pos};
  if (bare.end != pos) return word(bare.end);
  if (led.end_upper != second) return word(led.end_upper);
  if (bare.end_upper != pos) return word(bare.end_upper);
  return others_or_spaces_end(text, pos, kWordClass, "\r\n/");
}

size_t digits_cut(std::string_view text, size_t pos) {
  const Char first = char_at(text, pos);
  if (first.classes & kDigitStep) return pos + static_cast<size_t>(first.length);
  return run_end(text, pos, kDigitStep, 0);
}

}  // namespace

std::string_view pattern_of(CutStep step) {
  switch (step) {
    case CutStep::Gpt2:
      return kGpt2Pattern;
    case CutStep::Llama3:
      return kLlama3Pattern;
    case CutStep::Qwen2:
      return kQwen2Pattern;
    case CutStep::Qwen35:
      return kQwen35Pattern;
    case CutStep::Gpt4o:
      return kGpt4oPattern;
    default:
      return {};
  }
}

Result<CutStep> cut_step_of_pattern(std::string_view pattern) {
  for (const CutStep step :
       {CutStep::Gpt2, CutStep::Llama3, CutStep::Qwen2, CutStep::Qwen35, CutStep::Gpt4o}) {
    if (pattern == pattern_of(step)) return step;
  }
  return Error{ErrorCode::Unsupported, "the split pattern \"" + std::string(pattern) +
                                           "\" is not known; known are those of GPT-2, Llama 3, "
                                           "Qwen2, Qwen3.5 and GPT-4o"};
}

std::string_view name_of(CutStep step) {
  switch (step) {
    case CutStep::PrefixSpace:
      return "prefix space";
    case CutStep::Digits:
      return "digits one by one";
    case CutStep::Gpt2:
      return "GPT-2 pattern";
    case CutStep::Llama3:
      return "Llama 3 pattern";
    case CutStep::Qwen2:
      return "Qwen2 pattern";
    case CutStep::Qwen35:
      return "Qwen3.5 pattern";
    case CutStep::Gpt4o:
      return "GPT-4o pattern";
    case CutStep::AfterSpace:
      return "cut behind spaces";
    case CutStep::BeforeBar:
      return "cut before spaces";
  }
  check(false, "a step of cutting without a name");
  return {};
}

Result<std::vector<CutStep>> cut_steps_of_pre(std::string_view pre) {
  using Steps = std::vector<CutStep>;
  if (pre == "gpt-2") return Steps{CutStep::Gpt2};
  if (pre == "smollm") return Steps{CutStep::Digits, CutStep::Gpt2};
  if (pre == "llama-bpe") return Steps{CutStep::Llama3};
  if (pre == "qwen2") return Steps{CutStep::Qwen2};
  if (pre == "qwen35") return Steps{CutStep::Qwen35};
  if (pre == "gpt-4o") return Steps{CutStep::Gpt4o};
  return Error{ErrorCode::Unsupported, "the pre-tokenizer \"" + std::string(pre) +
                                           "\" is not known; known are gpt-2, smollm, llama-bpe, "
                                           "qwen2, qwen35 and gpt-4o"};
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
    case CutStep::Qwen35:
      return qwen35_cut(text, pos);
    case CutStep::Gpt4o:
      return gpt4o_cut(text, pos);
    case CutStep::AfterSpace:
      return std::min(text.find(' ', pos), text.size() - 1) + 1;
    case CutStep::BeforeBar:
      return std::min(text.find(kBar, pos + 1), text.size());
    case CutStep::PrefixSpace:
      break;
  }
  check(false, "a prefix space cuts nothing");
  return text.size();
}

}  // namespace paceline
