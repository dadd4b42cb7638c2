#include "measure/parity_tally.h"

#include <fmt/core.h>

#include <algorithm>

namespace paceline::measure {
namespace {

std::string hexadecimal(const unsigned char* bytes, size_t n) {
  std::string text;
  for (size_t i = n; i-- > 0;) text += fmt::format("{:02x}", bytes[i]);  // little-endian in memory
  return text;
}

}  // namespace

ParityRow& ParityTally::row_of(const ParityPlace& place) {
  const std::string key = fmt::format("{}|{}|{}|{}|{}", place.op, place.shape, place.type,
                                      place.table->variant, place.width);
  const auto [found, is_new] = index_.emplace(key, rows_.size());
  if (is_new) {
    ParityRow row;
    row.op = place.op;
    row.shape = place.shape;
    row.type = place.type;
    row.isa = place.table->variant;
    row.numerics = to_string(place.table->numerics);
    row.width = place.width;
    row.outputs = place.outputs;
    rows_.push_back(std::move(row));
  }
  return rows_[found->second];
}

void ParityTally::compare(const ParityPlace& place, std::string_view against, int row,
                          int64_t first_at, const void* got, const void* wanted, size_t size,
                          size_t element) {
  ParityRow& counted = row_of(place);
  counted.bytes += static_cast<int64_t>(size);
  if (std::memcmp(got, wanted, size) == 0) return;
  const auto* a = static_cast<const unsigned char*>(got);
  const auto* b = static_cast<const unsigned char*>(wanted);
  int64_t different = 0;
  size_t first = size;
  for (size_t i = 0; i < size; ++i) {
    if (a[i] == b[i]) continue;
    first = std::min(first, i);
    ++different;
  }
  counted.bytes_different += different;
  counted.different[std::string(against)] += different;
  if (counted.first) return;
  const size_t at = first / element;
  counted.first = ParityDifference{.against = std::string(against),
                                   .row = row,
                                   .at = first_at + static_cast<int64_t>(at),
                                   .got = hexadecimal(a + at * element, element),
                                   .wanted = hexadecimal(b + at * element, element),
                                   .threads = place.threads};
}

void ParityTally::finish(ParityResult& result) {
  result.rows = std::move(rows_);
  for (const ParityRow& row : result.rows) {
    result.bytes += row.bytes;
    result.bytes_different += row.bytes_different;
  }
}

}  // namespace paceline::measure
