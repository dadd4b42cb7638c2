#include "io/checkpoint.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Checkpoint, AMissingPathIsNotFound) {
  const auto opened = Checkpoint::open("/nowhere at all/x.gguf");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace paceline
