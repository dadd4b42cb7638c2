// Which table of kernels is chosen.
#include "kernels/choose.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/tile_kernels.h"

namespace paceline {
namespace {

TEST(Choice, ScalarAlwaysRunsAndTheBestIsLast) {
  const auto tables = kernel_tables();
  EXPECT_STREQ(tables[0]->variant, "scalar");
  EXPECT_EQ(*choose_kernel_table("", Numerics::Portable), tables.back());
  EXPECT_STREQ((*choose_kernel_table("scalar"))->isa, "scalar");
  EXPECT_EQ(choose_kernel_table("mmx").error().code, ErrorCode::BadUsage);
  for (const KernelTable* table : tables) EXPECT_EQ(table->numerics, Numerics::Portable);
  for (const KernelTable* table : kernel_tables(Numerics::Amx))
    EXPECT_EQ(table->numerics, Numerics::Amx);
}

TEST(Choice, AmxIsTheDefaultWhereItIsAndPortableBelowIt) {
  EXPECT_EQ((*choose_kernel_table("scalar"))->numerics, Numerics::Portable);
  EXPECT_EQ(choose_kernel_table("scalar", Numerics::Amx).error().code, ErrorCode::BadUsage);
  if (amx_is_usable()) {
    EXPECT_EQ((*choose_kernel_table(""))->numerics, Numerics::Amx);
    EXPECT_EQ((*choose_kernel_table("amx"))->numerics, Numerics::Amx);
    EXPECT_STREQ((*choose_kernel_table("", Numerics::Portable))->variant, "avx512-amx");
    EXPECT_STREQ((*choose_kernel_table("amx", Numerics::Portable))->variant, "avx512-amx");
    return;
  }
  EXPECT_EQ(*choose_kernel_table(""), kernel_tables().back());
  EXPECT_EQ(choose_kernel_table("amx").error().code, ErrorCode::Unsupported);
  const auto none = choose_kernel_table("", Numerics::Amx);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Unsupported);
  EXPECT_NE(none.error().message.find("amx-emulated"), std::string::npos);
}

TEST(Choice, TheEmulationIsTakenWhenAskedFor) {
  const auto emulated = choose_kernel_table("amx-emulated");
  if (!emulated) GTEST_SKIP() << "the emulation wants AVX2 on this processor";
  EXPECT_EQ((*emulated)->numerics, Numerics::Amx);
  EXPECT_EQ(*choose_kernel_table("amx-emulated", Numerics::Amx), *emulated);
  EXPECT_EQ(choose_kernel_table("amx-emulated", Numerics::Portable).error().code,
            ErrorCode::BadUsage);
}

}  // namespace
}  // namespace paceline
