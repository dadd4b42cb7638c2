#include "measure/parity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/choose.h"
#include "kernels/matmul.h"

namespace paceline::measure {
namespace {

ParityOptions options_for(std::string only) {
  ParityOptions options;
  options.depth = ParityDepth::Quick;
  const auto tables = kernel_tables();
  options.tables.assign(tables.begin(), tables.end());
  options.threads = {1, 3};
  options.only = std::move(only);
  return options;
}

// The tables of this machine, the best one's place taken by `broken`.
ParityOptions with_fault(const KernelTable& broken, std::string only) {
  ParityOptions options = options_for(std::move(only));
  options.tables.push_back(&broken);
  return options;
}

const KernelTable& best_table() { return *kernel_tables().back(); }

// Every row with differing bytes is of this table.
void expect_only_this_is_blamed(const ParityResult& result, const char* variant) {
  EXPECT_GT(result.bytes_different, 0);
  for (const ParityRow& row : result.rows) {
    EXPECT_EQ(row.bytes_different > 0, row.first.has_value());
    if (row.bytes_different > 0) {
      EXPECT_EQ(row.isa, variant) << row.op << row.shape;
    }
  }
}

TEST(Parity, ExactKernelsGiveEveryRowTheSameBytes) {
  for (const char* only :
       {"product 96 -> 35", "product, bias, add 64 -> 131", "product 577 -> 48",
        "joint products 96", "rms_norm 80", "quantize 576", "silu_mul 33", "rope", "argmax 15 ",
        "log_sum_exp 1025", "attend 20 x 6/2", "attend tree 20 x 6/2", "draw 1025", "gather 15 ",
        "group_max 1025", "exp_sum 1025", "append key 34", "append value 34"}) {
    const ParityResult result = run_parity(options_for(only));
    EXPECT_TRUE(result.complete);
    EXPECT_GT(result.bytes, 0) << only;
    EXPECT_EQ(result.bytes_different, 0) << only;
    std::set<std::string> seen;
    for (const ParityRow& row : result.rows) seen.insert(row.isa);
    EXPECT_EQ(seen.size(), kernel_tables().size()) << only;
  }
}

TEST(Parity, EveryWidthOfAProductIsCompared) {
  ParityOptions options = options_for("product 96 -> 35 q8_0");
  options.tables = {&best_table()};
  std::set<int> widths;
  for (const ParityRow& row : run_parity(options).rows) {
    widths.insert(row.width);
    EXPECT_EQ(row.shape, "96 -> 35");
    EXPECT_EQ(row.type, "q8_0");
    EXPECT_EQ(row.outputs, 35);
    // Alone: 32 rows against the definition at 4 outputs. Blocks: every output of every row.
    EXPECT_EQ(row.bytes, row.width == 1 ? 32 * 4 * 4 : row.width * 35 * 4);
  }
  if (std::string(best_table().isa) != "scalar") {
    EXPECT_EQ(widths.size(), 32u);
  }
}

TEST(Parity, TheWideControlIsCaught) {
  for (const char* only : {"product 576 -> 192 bf16", "product 576 -> 192 q8_0",
                           "product 576 -> 192 q4_1", "joint products 576"}) {
    ParityOptions options = options_for(only);
    options.wide = true;
    const ParityResult result = run_parity(options);
    for (const KernelTable* table : options.tables) {
      const auto blamed = [&](const ParityRow& row) {
        return row.isa == table->variant && row.width > 3 && row.different.contains("alone");
      };
      EXPECT_TRUE(std::any_of(result.rows.begin(), result.rows.end(), blamed))
          << only << " " << table->variant;
    }
  }
}

// A tree whose branches are attended under a mask and summed by slots.
TEST(Parity, ATreeThatIsSummedInTheOrderOfItsSlotsIsCaught) {
  ParityOptions options = options_for("attend tree 64 x 9/3 behind 40");
  options.wide = true;
  const ParityResult result = run_parity(options);
  for (const KernelTable* table : options.tables) {
    const auto blamed = [&](const ParityRow& row) {
      return row.isa == table->variant && row.width > 1 && row.different.contains("alone");
    };
    EXPECT_TRUE(std::ranges::any_of(result.rows, blamed)) << table->variant;
  }
  options.only = "attend 64 x 9/3";
  EXPECT_EQ(run_parity(options).bytes_different, 0) << "chains stand in order";
}

// A product that is wrong in one output of one row, and in blocks of five rows only.
void wrong_at_five_rows(const MatmulArgs& args, int first_tile, int last_tile) {
  best_table().matmul[0](args, first_tile, last_tile);
  if (args.rows == 5 && first_tile == 0) args.y[2 * args.y_stride + 7] += 1.0f;
}

TEST(Parity, AFaultOfOneWidthIsNamed) {
  KernelTable broken = best_table();
  broken.variant = "broken";
  broken.matmul[0] = wrong_at_five_rows;
  const ParityResult result = run_parity(with_fault(broken, "product 96 -> 35 f32"));
  expect_only_this_is_blamed(result, "broken");
  for (const ParityRow& row : result.rows) {
    if (row.bytes_different == 0) continue;
    EXPECT_EQ(row.width, 5);
    EXPECT_EQ(row.first->against, "alone");
    EXPECT_EQ(row.first->row, 2);
    EXPECT_EQ(row.first->at, 7);
    EXPECT_NE(row.first->got, row.first->wanted);
  }
}

// A norm whose last bit is off, in every block alike.
void norm_with_another_order(const float* x, const float* weight, float eps, int rows, int dim,
                             float* y) {
  best_table().rms_norm(x, weight, eps, rows, dim, y);
  for (int row = 0; row < rows; ++row) y[row * dim] *= 1.0f + 0x1p-22f;
}

TEST(Parity, AFaultThatEveryWidthSharesIsToldByTheDefinition) {
  KernelTable broken = best_table();
  broken.variant = "broken";
  broken.rms_norm = norm_with_another_order;
  ParityOptions options = with_fault(broken, "rms_norm 80");
  std::rotate(options.tables.begin(), options.tables.end() - 1, options.tables.end());
  const ParityResult result = run_parity(options);
  expect_only_this_is_blamed(result, "broken");
  for (const ParityRow& row : result.rows)
    if (row.bytes_different > 0) {
      EXPECT_EQ(row.width, 1) << "blocks agree with the rows alone";
    }
}

TEST(Parity, StopsWhenAsked) {
  ParityOptions options = options_for("product 576 -> 192");
  int looked = 0;
  options.stop = [&] { return ++looked > 3; };
  const ParityResult result = run_parity(options);
  EXPECT_FALSE(result.complete);
  EXPECT_LT(looked, 10);
}

}  // namespace
}  // namespace paceline::measure
