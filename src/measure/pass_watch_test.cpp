#include "measure/pass_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "measure/hygiene.h"
#include "models/golden_support.h"

namespace paceline::measure {
namespace {

TEST(PassWatch, TellsWhatTheLooksSaw) {
  std::vector<double> ratios(15, 1.12);
  ratios.resize(20, 1.4);
  ratios[3] = 9;  // one that was disturbed
  const Watched watched = summarize_looks(ratios, {3e-7, 1e-3, 4e-7});
  EXPECT_NEAR(watched.mean, (12 * 1.12 + 4 * 1.4) / 16, 1e-12);
  EXPECT_EQ(watched.low, 1.12);
  EXPECT_EQ(watched.high, 1.4);
  EXPECT_EQ(watched.crossing, 4e-7);
  EXPECT_EQ(summarize_looks({1.5}, {}).low, 1.5);
  EXPECT_EQ(summarize_looks({1.5}, {}).high, 1.5);
  EXPECT_FALSE(summarize_looks({1.5}, {}).crossing);
}

TEST(PassWatch, LooksAtPassesOfAnEngine) {
  for (const int threads : {1, 2}) {
    const auto engine = Engine::open(goldens() / "llama/plain", {.threads = threads});
    ASSERT_TRUE(engine) << engine.error().message;
    auto watch = PassWatch::make(*engine);
    ASSERT_TRUE(watch) << watch.error().message;
    EXPECT_FALSE(watch->watched());
    watch->look();
    ASSERT_TRUE(watch->watched());
    EXPECT_GT(watch->watched()->mean, 0);
    // Also none where other programs keep the CPUs busy.
    EXPECT_LE(watch->watched()->crossing.has_value(), threads > 1);
    EXPECT_GT(watch->watched()->crossing.value_or(1), 0);
  }
}

TEST(Noise, AMachineThatChangedIsNamed) {
  BenchResult result;
  result.watched = {.looks = 10, .mean = 1.2, .low = 1.15, .high = 1.3};
  EXPECT_TRUE(noise_of_result(result).empty());
  result.watched->high = 1.42;
  ASSERT_EQ(noise_of_result(result).size(), 1u);
  EXPECT_EQ(noise_of_result(result)[0],
            "a pass of 4 rows cost from 1.15 to 1.42 of one row: the machine changed");
  result.watched->looks = 9;
  EXPECT_TRUE(noise_of_result(result).empty());
}

}  // namespace
}  // namespace paceline::measure
