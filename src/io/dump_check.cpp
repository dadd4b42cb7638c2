#include "io/dump_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "io/shown.h"

namespace paceline {
namespace {

// magnitude: the bits of a value without its sign; infinite: those of an infinity.
template <class T, class Magnitude>
std::optional<RowFault> fault_of(std::span<const T> hidden, uint32_t infinite,
                                 const Magnitude& magnitude) {
  uint32_t largest = 0;
  for (const T value : hidden) largest = std::max(largest, magnitude(value));
  if (largest > infinite) return RowFault::NotANumber;
  if (largest == infinite) return RowFault::Infinite;
  return largest == 0 ? std::optional(RowFault::AllZero) : std::nullopt;
}

std::optional<RowFault> fault_of(const DumpStream& stream, int row) {
  const auto width = static_cast<size_t>(stream.width);
  const size_t first = static_cast<size_t>(row) * width;
  if (!stream.hiddens_bf16.empty())
    return fault_of(stream.hiddens_bf16.subspan(first, width), 0x7f80u,
                    [](bf16 value) { return uint32_t{value.bits} & 0x7fffu; });
  return fault_of(stream.hiddens_f32.subspan(first, width), 0x7f800000u,
                  [](float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; });
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

std::vector<BadRow> find_bad_rows(const DumpStream& stream, int rows) {
  std::vector<BadRow> bad;
  for (int row = 0; row < rows; ++row)
    if (const auto fault = fault_of(stream, row)) bad.push_back({row, *fault});
  return bad;
}

std::string sentence_of(const DumpStream& stream, const BadRow& bad) {
  return fmt::format("stream {}, position {}: {}", quoted_name(stream.id), bad.row,
                     words_of(bad.fault));
}

}  // namespace paceline
