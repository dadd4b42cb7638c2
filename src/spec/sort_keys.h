// Sorting of what a row's values become: a value's bits in the upper half, an id in the lower one.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

// Ascending. The ids ascend already, and the top bit is 0. Thousands of keys go by radix, which
// keeps the order of equal values: some 5 ns a key instead of 50. scratch: as many keys. Allocates
// nothing.
void sort_keys(std::span<uint64_t> keys, std::span<uint64_t> scratch);

}  // namespace paceline
