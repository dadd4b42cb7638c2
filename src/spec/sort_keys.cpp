#include "spec/sort_keys.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace paceline {
namespace {

constexpr size_t kFew = 256;  // below, comparing is faster
constexpr int kDigitBits = 11;
constexpr int kDigits = 3;
constexpr size_t kBuckets = size_t{1} << kDigitBits;

size_t digit(uint64_t key, int place) {
  return (key >> (32 + kDigitBits * place)) & (kBuckets - 1);
}

}  // namespace

void sort_keys(std::span<uint64_t> keys, std::span<uint64_t> scratch) {
  if (keys.size() < kFew) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  check(scratch.size() >= keys.size(), "there is room to sort");
  std::array<std::array<uint32_t, kBuckets>, kDigits> counts = {};
  for (const uint64_t key : keys)
    for (int place = 0; place < kDigits; ++place) ++counts[place][digit(key, place)];

  std::span<uint64_t> from = keys;
  std::span<uint64_t> to = scratch.first(keys.size());
  for (int place = 0; place < kDigits; ++place) {
    std::array<uint32_t, kBuckets>& next = counts[place];
    if (next[digit(from[0], place)] == keys.size()) continue;  // all have the same digit
    uint32_t begin = 0;
    for (uint32_t& count : next) {
      const uint32_t here = count;
      count = begin;
      begin += here;
    }
    for (const uint64_t key : from) to[next[digit(key, place)]++] = key;
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::copy(from.begin(), from.end(), keys.begin());
}

}  // namespace paceline
