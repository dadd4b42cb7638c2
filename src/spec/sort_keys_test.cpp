#include "spec/sort_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace paceline {
namespace {

TEST(SortKeys, OrdersByValueAndThenById) {
  std::mt19937 random(1);
  for (const size_t n : {0, 1, 2, 255, 256, 257, 1000, 50000}) {
    // Values over the whole range, from a small part of it, from a few, and all the same.
    for (const uint32_t values : {0x7fffffffu, 5000u, 3u, 1u}) {
      std::vector<uint64_t> keys;
      for (size_t id = 0; id < n; ++id)
        keys.push_back((uint64_t{random() % values} << 32) | (id * 2));
      auto wanted = keys;
      std::sort(wanted.begin(), wanted.end());
      std::vector<uint64_t> scratch(n);
      sort_keys(keys, scratch);
      EXPECT_EQ(keys, wanted) << n << " keys of " << values << " values";
    }
  }
}

}  // namespace
}  // namespace paceline
