#include "models/kv_memory.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(KvMemory, GivesWhatCameBackToTheNextThatFits) {
  const auto memory = std::make_shared<KvMemory>();
  const std::byte* first = nullptr;
  {
    const auto taken = *memory->take(6 * kMiB);
    first = taken->data();
    taken->data()[5] = std::byte{7};
    const std::shared_ptr<std::byte> page(taken, taken->data() + kMiB);
    EXPECT_EQ(memory->idle_bytes(), 0u);
  }
  EXPECT_EQ(memory->idle_bytes(), 6 * kMiB);
  const auto larger = *memory->take(7 * kMiB);
  EXPECT_NE(larger->data(), first) << "too small";
  const auto much_smaller = *memory->take(2 * kMiB);
  EXPECT_NE(much_smaller->data(), first) << "more than twice as large";
  const auto again = *memory->take(4 * kMiB);
  EXPECT_EQ(again->data(), first);
  EXPECT_EQ(again->data()[5], std::byte{7}) << "it is not cleared";
  EXPECT_EQ(memory->idle_bytes(), 0u);
}

TEST(KvMemory, WaitsForAllWhoShare) {
  const auto memory = std::make_shared<KvMemory>();
  auto taken = *memory->take(kMiB);
  std::shared_ptr<std::byte> page(taken, taken->data());
  taken.reset();
  EXPECT_EQ(memory->idle_bytes(), 0u);
  page.reset();
  EXPECT_EQ(memory->idle_bytes(), kMiB);
}

TEST(KvMemory, KeepsNoMoreThanItsLimit) {
  const auto memory = std::make_shared<KvMemory>();
  {
    const auto a = *memory->take(40 * kMiB);
    const auto b = *memory->take(40 * kMiB);
  }
  EXPECT_EQ(memory->idle_bytes(), 40 * kMiB);
}

TEST(KvMemory, OutlivesNobody) {
  auto memory = std::make_shared<KvMemory>();
  const auto taken = *memory->take(kMiB);
  memory.reset();
  taken->data()[0] = std::byte{1};  // still there, and freed with its last holder
}

}  // namespace
}  // namespace paceline
