#include "measure/head_use.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "models/head_support.h"
#include "models/registry.h"
#include "tests/toy_engine.h"
#include "tests/toy_head.h"

namespace paceline::measure {
namespace {

namespace fs = std::filesystem;
using Verdict = HeadUse::Verdict;

HeadUse look(const Engine& engine) {
  const auto prompts = head_use_prompts(engine);
  EXPECT_TRUE(prompts.has_value());
  const auto use = look_at_head(engine, *prompts, 100);
  EXPECT_TRUE(use.has_value()) << use.error().message;
  return *use;
}

// The toy's head is right three times of four.
TEST(HeadUse, AGoodHeadIsUseful) {
  auto engine = *Engine::with_model(std::make_unique<ToyHeadedModel>(ToyOptions{.speech = 200}),
                                    4000, 1, {}, CacheType::F32);
  ASSERT_TRUE(engine.use_head({}));
  const HeadUse use = look(engine);
  EXPECT_EQ(use.verdict, Verdict::Useful);
  EXPECT_GT(use.accepted, use.drafted / 2);
  EXPECT_LT(use.commonest, 0.3);
  EXPECT_FALSE(use.constant);
}

// A small trunk, and a head over it that is scaled by `size`.
Engine small_engine(float size) {
  const auto checkpoint =
      Checkpoint::open(fs::path(PACELINE_SOURCE_DIR) / "tests/golden/llama/gguf_quant/model.gguf");
  auto model = *load_model(*checkpoint, {});
  HeadTensors head = random_head(*model, HeadConfig{}, 3);
  for (auto& [name, tensor] : head.tensors)
    for (float& value : tensor.values) value *= size;
  auto engine = *Engine::with_model(std::move(model), 512, 1, {});
  EXPECT_TRUE(engine.use_head(head));
  return engine;
}

TEST(HeadUse, ARandomHeadIsUseless) {
  const HeadUse use = look(small_engine(1));
  EXPECT_GT(use.drafted, 100);
  EXPECT_EQ(use.verdict, Verdict::Useless)
      << to_string(use.verdict) << ", " << use.accepted << " of " << use.drafted << ", commonest "
      << use.commonest;
}

TEST(HeadUse, AHeadOfZerosIsConstantAndNamedSo) {
  const HeadUse use = look(small_engine(0));
  EXPECT_EQ(use.verdict, Verdict::Constant);
  EXPECT_EQ(use.constant, 0);  // the lowest id of equals
}

TEST(HeadUse, WithoutAHeadThereIsNothingToLookAt) {
  const Engine engine = toy_engine();
  EXPECT_FALSE(look_at_head(engine, *head_use_prompts(engine), 10));
}

TEST(HeadUse, SharesAreNoSurerThanTheirNumber) {
  EXPECT_NEAR(least_share(50, 100), 0.4038, 1e-3);  // Wilson's interval is 0.404 to 0.596
  EXPECT_NEAR(least_share(1, 1), 0.2065, 1e-3);
  EXPECT_EQ(least_share(0, 0), 0);
}

}  // namespace
}  // namespace paceline::measure
