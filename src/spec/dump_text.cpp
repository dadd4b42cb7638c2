#include "spec/dump_text.h"

#include <algorithm>

namespace paceline {

std::optional<RecordedText> recorded_text(const DumpStream& stream, bool cycles) {
  RecordedText text{.tokens = stream.tokens, .n_prompt = stream.n_prompt};
  const bool cut = !cycles && stream.cycle_start < stream.positions();
  if (cut) text.tokens = text.tokens.first(static_cast<size_t>(stream.cycle_start));
  const int n_output = static_cast<int>(text.tokens.size()) - text.n_prompt;
  if (n_output < 1) return std::nullopt;
  text.budget = stream.ended && !cut ? std::max(stream.budget, n_output) : n_output;
  text.dim = stream.width;
  text.hidden = [stream](int row, std::span<float> out) { stream.hidden(row, out); };
  return text;
}

}  // namespace paceline
