// Faults planted in a small trunk, one at a time: `drift` and `trace-compare` find each, and
// nothing where there is none.
#include "tests/planted_faults.h"

#include <filesystem>

#include "models/registry.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using measure::DriftOutcome;
using Verdict = measure::TraceComparison::Verdict;

// 4-bit and 8-bit weights, dim 64, vocabulary 130, context 512.
Engine small_trunk(const Planted& planted = {}) {
  const auto checkpoint =
      Checkpoint::open(fs::path(PACELINE_SOURCE_DIR) / "tests/golden/llama/gguf_quant/model.gguf");
  check(checkpoint.has_value(), "the small model is in the repository");
  auto model = load_model(*checkpoint, {.threads = 1, .wide = planted.wide});
  check(model.has_value(), "the small model loads");
  auto faulty = std::make_unique<FaultyModel>(*std::move(model), planted.fault, planted.grid);
  auto engine = Engine::with_model(std::move(faulty), 512, 1, {}, CacheType::F16);
  check(engine.has_value(), "an engine over it opens");
  return std::move(*engine);
}

// Ids without a pattern.
Ids some_ids(int n, uint64_t seed) {
  Ids ids(static_cast<size_t>(n));
  for (TokenId& id : ids) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<TokenId>((seed >> 33) % 130);
  }
  return ids;
}

std::vector<Ids> some_prompts(int n) {
  std::vector<Ids> prompts;
  for (int i = 0; i < n; ++i)
    prompts.push_back(some_ids(8 + i % 24, 100 + static_cast<uint64_t>(i)));
  return prompts;
}

Found look_at(const char* name, const Planted& planted, Sweep sweep = {}, int n_prompts = 12,
              int n_text = 1300) {
  const Engine a = small_trunk({.wide = planted.wide, .grid = planted.grid});
  const Engine b = small_trunk(planted);
  sweep.max_tokens = 80;
  const Found found = look(a, b, some_prompts(n_prompts), some_ids(n_text, 7), sweep);
  tell(name, found);
  return found;
}

TEST(PlantedFaults, NothingIsFoundInTenThousandExactPositions) {
  int64_t compared = 0;
  int64_t traced = 0;
  for (const int width : {2, 5, 17}) {
    const Found found = look_at("none", {}, {.width = width}, 45, 3700);
    EXPECT_EQ(found.drift.outcome, DriftOutcome::Same) << "width " << width;
    EXPECT_EQ(found.forced.all_differing(), 0);
    EXPECT_EQ(found.forced.moved, 0);
    EXPECT_EQ(found.traces.verdict(), Verdict::Same);
    EXPECT_EQ(found.traces.moved, 0);
    EXPECT_EQ(found.traces.quantile(1), 0);
    compared += found.drift.compared;
    traced += found.traces.positions;
  }
  EXPECT_GE(compared, 10'000);
  EXPECT_GE(traced, 10'000);
}

TEST(PlantedFaults, ASkippedRollbackIsFound) {
  const Found found = look_at("skipped rollback", {.fault = Fault::SkippedRollback});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.all_differing(), 0);
  EXPECT_NE(found.traces.verdict(), Verdict::Same);
  EXPECT_GT(found.traces.moved, 0);
}

TEST(PlantedFaults, AStaleCacheRowIsFound) {
  const Found found = look_at("stale cache row", {.fault = Fault::StaleRow});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.all_differing(), 0);
  EXPECT_NE(found.traces.verdict(), Verdict::Same);
  EXPECT_GT(found.traces.moved, 0);
}

TEST(PlantedFaults, ASwappedTieRuleIsFound) {
  const Planted ties = {.grid = 0.25f};
  const Found same = look_at("ties, one rule", ties);
  EXPECT_EQ(same.drift.outcome, DriftOutcome::Same);
  EXPECT_EQ(same.traces.moved, 0);
  const Found found = look_at("swapped tie rule", ties, {.last_of_equals = true});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_EQ(found.traces.verdict(), Verdict::Undecided);
  EXPECT_EQ(found.traces.differing, found.traces.differing_by_gap[0]);
}

TEST(PlantedFaults, WideKernelsAreFound) {
  const Found found = look_at("wide kernels", {.wide = true});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.moved, 0);
  EXPECT_NE(found.traces.verdict(), Verdict::Same);
  EXPECT_GT(found.traces.moved, 0);
}

}  // namespace
}  // namespace paceline
