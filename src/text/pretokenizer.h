// Cutting text into the pieces within which byte-level BPE merges. A merge never crosses a cut, so
// where the cuts fall decides the ids.
//
// The patterns that models use are scanners written by hand: they are exact with respect to the
// Unicode version of the reference (see unicode_classes.h), take linear time on any input, and
// cannot be made to backtrack. A pattern that is not among them is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline {

enum class CutStep {
  PrefixSpace,  // a space in front of a piece that has none
  Digits,       // every digit (\p{N}) alone
  Gpt2,         // the pattern of GPT-2
  Llama3,       // the pattern of Llama 3: up to three digits together
  Qwen2,        // the same with single digits
  Qwen35,       // the same with marks as parts of words
  Gpt4o,        // the pattern of GPT-4o: words begin anew where lower case turns to upper
  AfterSpace,   // behind every space
  BeforeBar,    // before every U+2581, the mark that stands for a space
};

// The step for a pattern as tokenizer.json writes it; Unsupported, naming it, for any other.
Result<CutStep> cut_step_of_pattern(std::string_view pattern);
// The pattern that tokenizer.json writes for a step; empty for one that is no pattern.
std::string_view pattern_of(CutStep step);
// "Llama 3 pattern" and the like.
std::string_view name_of(CutStep step);

// The steps for a name of GGUF's tokenizer.ggml.pre. Unsupported, listing the known, otherwise.
Result<std::vector<CutStep>> cut_steps_of_pre(std::string_view pre);

// Where the first piece of text[pos, ...) ends under `step` (not PrefixSpace). pos < text.size();
// `text` is valid UTF-8.
size_t next_cut(CutStep step, std::string_view text, size_t pos);

// Calls sink(piece) for every piece, in order. A piece is a view into `text`, or, behind
// PrefixSpace, into memory that ends with the call.
template <class Sink>
void for_each_piece(const CutStep* step, const CutStep* end, std::string_view text, Sink& sink) {
  if (text.empty()) return;
  if (step == end) {
    sink(text);
  } else if (*step == CutStep::PrefixSpace) {
    if (text.front() == ' ') return for_each_piece(step + 1, end, text, sink);
    std::string spaced(1, ' ');
    spaced += text;
    for_each_piece(step + 1, end, std::string_view(spaced), sink);
  } else {
    for (size_t pos = 0; pos < text.size();) {
      const size_t cut = next_cut(*step, text, pos);
      for_each_piece(step + 1, end, text.substr(pos, cut - pos), sink);
      pos = cut;
    }
  }
}

}  // namespace paceline
