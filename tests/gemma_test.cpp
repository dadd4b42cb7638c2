// Gemma 3 270M as it is released for CPUs: equal to transformers in float32, and the same bytes
// whatever the depth, past its window of 512. The model's terms keep it out of this repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "tests/real_runs.h"

namespace paceline {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Gemma : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PACELINE_GEMMA3") == nullptr)
      GTEST_SKIP() << "set PACELINE_GEMMA3 to what `script/fetch gemma3-270m` prints last";
    std::ifstream file(fs::path(PACELINE_SOURCE_DIR) / "tests/golden/gemma3_greedy.json");
    golden_ = Json::parse(file);
  }

  static Engine open(const EngineOptions& options) {
    return open_real_model(std::getenv("PACELINE_GEMMA3"), options);
  }

  Json golden_;
};

TEST_F(Gemma, GreedyInFloat32EqualsTransformers) {
  const Engine engine = open({.weights = WeightsType::F32, .context = 2048});
  for (const Json& entry : golden_["greedy"]) {
    const std::vector<TokenId> wanted = entry["token_ids"];
    Request request{.prompt = entry["prompt_ids"], .max_tokens = static_cast<int>(wanted.size())};
    request.depth = 0;
    request.ignore_eos = true;
    const auto got = generate(engine, request);
    const auto [at, other] = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
    if (at == got.end() && other == wanted.end()) continue;
    // A difference is allowed at a near-tie only, and shown.
    ASSERT_NE(other, wanted.end()) << entry["prompt"] << ": longer than the reference";
    const auto index = static_cast<size_t>(other - wanted.begin());
    const double gap = entry["gaps"][index];
    std::printf("%s: first difference at token %zu, where the top two are %.2e apart\n",
                entry["prompt"].get<std::string>().c_str(), index, gap);
    EXPECT_LT(gap, 1e-3) << entry["prompt"] << " token " << index;
  }
}

TEST_F(Gemma, SpeculationChangesNothingPastTheWindow) {
  const Engine engine = open({.context = 2048});
  EXPECT_EQ(engine.gate().verdict, Verdict::Exact) << engine.gate().reason;
  Request request{.prompt = golden_["greedy"].back()["prompt_ids"], .max_tokens = 96};
  ASSERT_GT(request.prompt.size(), 512u);
  request.ignore_eos = true;
  request.depth = 0;
  const auto plain = generate(engine, request);
  request.drafter = DrafterKind::Scripted;
  request.script = plain;
  for (size_t i = 2, gap = 1; i < plain.size(); i += gap, gap = gap % 7 + 1)
    request.script[i] = (plain[i] + 1) % engine.model().info().vocab_size;
  for (const int depth : {3, 8}) {
    request.depth = depth;
    EXPECT_EQ(generate(engine, request), plain) << depth;
  }
}

}  // namespace
}  // namespace paceline
