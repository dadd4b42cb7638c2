#include "measure/bandwidth.h"

#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

TEST(StreamLoop, MeasuresARateThatAMachineCanHave) {
  auto loop = StreamLoop::make(int64_t{64} << 20, 2);
  ASSERT_TRUE(loop.has_value());
  EXPECT_EQ(loop->bytes(), int64_t{64} << 20);
  EXPECT_EQ(loop->median_rate(), 0);
  for (int i = 0; i < 5; ++i) loop->pass();
  // A loop that was optimised away would claim thousands of GB/s.
  EXPECT_GT(loop->median_rate(), 0.05);
  EXPECT_LT(loop->best_rate(), 1500);
  EXPECT_GE(loop->best_rate(), loop->median_rate());
}

TEST(StreamLoop, ABufferIsNeverTooSmallToTime) {
  const auto loop = StreamLoop::make(100, 1);
  ASSERT_TRUE(loop.has_value());
  EXPECT_GE(loop->bytes(), int64_t{1} << 20);
}

}  // namespace
}  // namespace paceline::measure
