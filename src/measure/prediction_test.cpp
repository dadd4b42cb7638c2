#include "measure/prediction.h"

#include <gtest/gtest.h>

#include "measure/bench.h"

namespace paceline::measure {
namespace {

PassCosts costs_with_slope(double slope) {
  PassCosts passes;
  for (int m = 1; m <= PassCosts::kMostRows; ++m) passes.multiplier[m] = 1 + slope * (m - 1);
  return passes;
}

// 100 rounds of 10 ms passes, of 0.5 ms for all else.
GenerationStats plain_run() {
  GenerationStats plain;
  plain.rounds = 100;
  plain.round_tokens = 100;
  plain.rounds_by_drafted = {100};
  plain.verify_seconds = 1.0;
  plain.other_seconds = 0.04;
  plain.draft_seconds = 0.01;
  return plain;
}

TEST(Prediction, OfAPlainRunIsItsOwnTime) {
  const GenerationStats plain = plain_run();
  EXPECT_DOUBLE_EQ(predicted_seconds(plain, plain, costs_with_slope(0.3), 0.001), 1.05);
}

TEST(Prediction, AddsUpPassesByWidthDraftsAndTokens) {
  GenerationStats run;
  run.rounds = 20;
  run.round_tokens = 50;
  run.proposed = 60;
  run.rounds_by_drafted = {5, 0, 10, 5};
  // Times of the run itself must not count.
  run.verify_seconds = run.draft_seconds = run.other_seconds = 1e9;
  const double passes = 5 * 1.0 + 10 * 1.6 + 5 * 1.9;
  EXPECT_DOUBLE_EQ(predicted_seconds(run, plain_run(), costs_with_slope(0.3), 0.001),
                   passes * 0.01 + 60 * 0.001 + 50 * 0.0005);
}

// A tree has more rows than were timed: they lie on the line of those that were.
TEST(Prediction, OfATreeThatIsWiderThanThePassesThatWereTimed) {
  GenerationStats run;
  run.rounds = 2;
  run.round_tokens = 4;
  run.proposed = 62;
  run.rounds_by_drafted.assign(kMaxTree + 1, 0);
  run.rounds_by_drafted[kMaxTree] = 2;
  const double pass = 1 + 0.3 * kMaxTree;
  EXPECT_NEAR(predicted_seconds(run, plain_run(), costs_with_slope(0.3), 0.001),
              2 * pass * 0.01 + 62 * 0.001 + 4 * 0.0005, 1e-9);
}

TEST(Prediction, ErrorIsAShareOfTheMeasured) {
  ArmSummary arm;
  arm.shape.depth = 4;
  arm.predicted_tokens_per_second = 95;
  EXPECT_FALSE(arm.prediction_error().has_value()) << "nothing was measured";
  arm.tokens_per_second = 100;
  EXPECT_NEAR(*arm.prediction_error(), -0.05, 1e-12);
  arm.shape.depth = 0;
  EXPECT_FALSE(arm.prediction_error().has_value()) << "the prediction stands on it";
}

}  // namespace
}  // namespace paceline::measure
