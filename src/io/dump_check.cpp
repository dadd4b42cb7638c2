#include "io/dump_check.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <span>

#include "io/shown.h"

namespace paceline {
namespace {

std::optional<RowFault> fault_of(std::span<const float> hidden) {
  bool infinite = false;
  bool zero = true;
  for (const float value : hidden) {
    if (std::isnan(value)) return RowFault::NotANumber;
    infinite = infinite || std::isinf(value);
    zero = zero && value == 0;
  }
  if (infinite) return RowFault::Infinite;
  return zero ? std::optional(RowFault::AllZero) : std::nullopt;
}

const char* words_of(RowFault fault) {
  switch (fault) {
    case RowFault::NotANumber:
      return "the hidden holds a NaN";
    case RowFault::Infinite:
      return "the hidden holds an infinity";
    case RowFault::AllZero:
      return "the hidden is all zeros";
  }
  return "";
}

}  // namespace

std::string BadRow::sentence() const {
  return fmt::format("stream {}, position {}: {}", quoted_name(id), row, words_of(fault));
}

std::vector<BadRow> find_bad_rows(const Dump& dump) {
  std::vector<BadRow> bad;
  std::vector<float> hidden(static_cast<size_t>(dump.header().hidden_width));
  for (int i = 0; i < dump.size(); ++i) {
    const DumpStream stream = dump.stream(i);
    for (int row = 0; row < stream.positions(); ++row) {
      stream.hidden(row, hidden);
      if (const auto fault = fault_of(hidden))
        bad.push_back({i, std::string(stream.id), row, *fault});
    }
  }
  return bad;
}

}  // namespace paceline
