#include "spec/dump_text.h"

#include <algorithm>

#include "fmt/format.h"

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

Result<void> check_tap(const DumpHeader& dump, const HeadConfig& head) {
  const bool says_nothing = dump.family.empty();
  if (!says_nothing && dump.tap != head.tap) {
    return Error{
        ErrorCode::BadUsage,
        fmt::format("the dump's hiddens were taken {} the final norm, the head reads those "
                    "{} it; collect with --tap {}, or take another head",
                    to_string(dump.tap), to_string(head.tap), to_string(head.tap))};
  }
  if (dump.type == TapType::BF16 && head.tap_type == TapType::F32) {
    return Error{ErrorCode::BadUsage,
                 "the dump's hiddens were rounded to bf16, and the head reads float32; collect "
                 "with --dump-type f32, or take another head"};
  }
  return {};
}

}  // namespace paceline
