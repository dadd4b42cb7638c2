// The same faults in SmolLM2-135M-Instruct, as users run it, and none where there is none.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/registry.h"
#include "tests/planted_faults.h"
#include "tests/real_runs.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using measure::DriftOutcome;
using Verdict = measure::TraceComparison::Verdict;

// script/test sets the path; without it these tests fail, they do not pass by silence.
fs::path model_file() {
  const char* path = std::getenv("PACELINE_SMOLLM2");
  EXPECT_NE(path, nullptr) << "set PACELINE_SMOLLM2 to what `script/fetch smollm2` prints";
  return path == nullptr ? "" : path;
}

Engine real_trunk(const Planted& planted) {
  const auto checkpoint = Checkpoint::open(model_file());
  check(checkpoint.has_value(), "the file that PACELINE_SMOLLM2 names is a checkpoint");
  auto model = load_model(*checkpoint, {.threads = 2, .wide = planted.wide});
  check(model.has_value(), "it loads");
  auto faulty = std::make_unique<FaultyModel>(*std::move(model), planted.fault, planted.grid);
  auto engine = Engine::with_model(std::move(faulty), 8192, 2, {}, CacheType::F16);
  check(engine.has_value(), "an engine over it opens");
  return std::move(*engine);
}

// What the sweep reads: the prompts of the repository, and a text of prose, prompts and pages.
struct Texts {
  std::vector<Ids> prompts;
  Ids text;
};

std::string contents(const fs::path& path) {
  std::ifstream file(fs::path(PACELINE_SOURCE_DIR) / path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const Texts& texts() {
  static const Texts made = [] {
    const Engine engine = open_real_model(model_file(), {});
    Texts texts;
    std::string all = contents("tests/golden/perplexity_text.txt");
    for (const char* name : {"drift", "eval", "bench"}) {
      std::istringstream lines(
          contents(fs::path("tools/prompts") / (std::string(name) + ".jsonl")));
      for (std::string line; std::getline(lines, line);) {
        const std::string prompt = nlohmann::json::parse(line)["prompt"];
        all += "\n\n" + prompt;
        const ChatMessage message = {"user", prompt};
        texts.prompts.push_back(*engine.encode_chat({&message, 1}));
      }
    }
    for (const char* name : {"docs/design.md", "docs/numerics.md", "docs/formats.md"})
      all += contents(name);
    texts.text = *engine.encode_text(all);
    return texts;
  }();
  return made;
}

// The first prompts are English, Japanese, Chinese, code, JSON and emoji.
Found look_at(const char* name, const Planted& planted, Sweep sweep = {}, size_t n_prompts = 12,
              size_t pieces = 2) {
  const Engine a = real_trunk({.wide = planted.wide, .grid = planted.grid});
  const Engine b = real_trunk(planted);
  sweep.prefill = 512;
  sweep.piece = 1536;
  const Texts& all = texts();
  EXPECT_GE(all.prompts.size(), n_prompts);
  EXPECT_GE(all.text.size(), pieces * 1536);
  const Found found = look(a, b, {all.prompts.begin(), all.prompts.begin() + n_prompts},
                           {all.text.begin(), all.text.begin() + pieces * 1536}, sweep);
  tell(name, found);
  return found;
}

void expect_nothing(const Found& found) {
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Same);
  EXPECT_EQ(found.drift.differing, 0);
  EXPECT_EQ(found.forced.all_differing(), 0);
  EXPECT_EQ(found.forced.moved, 0);
  EXPECT_EQ(found.traces.verdict(), Verdict::Same);
  EXPECT_EQ(found.traces.moved, 0);
  EXPECT_EQ(found.traces.quantile(1), 0);
}

// With PACELINE_WHOLE set ten thousand positions, which takes some minutes; else a fifth of them.
bool whole() { return std::getenv("PACELINE_WHOLE") != nullptr; }

TEST(PlantedFaultsReal, NothingDriftsWhereNothingIsPlanted) {
  const Found found = look_at("none", {}, {.max_tokens = 100}, whole() ? 102 : 21, 1);
  expect_nothing(found);
  EXPECT_GE(found.drift.compared, whole() ? 10'000 : 2'000);
  EXPECT_GE(found.forced.positions, whole() ? 10'000 : 2'000);
}

TEST(PlantedFaultsReal, TracesAreTheSameWhereNothingIsPlanted) {
  const Found found = look_at("none", {}, {}, 1, whole() ? 10 : 2);
  expect_nothing(found);
  EXPECT_GE(found.traces.positions, whole() ? 10'000 : 2'000);
}

TEST(PlantedFaultsReal, WideKernelsAreFound) {
  const Found found = look_at("wide kernels", {.wide = true}, {.max_tokens = 256});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.moved, 0);
  EXPECT_NE(found.traces.verdict(), Verdict::Same);
  EXPECT_GT(found.traces.moved, 0);
}

TEST(PlantedFaultsReal, ASkippedRollbackIsFound) {
  const Found found = look_at("skipped rollback", {.fault = Fault::SkippedRollback});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.all_differing(), 0);
  EXPECT_EQ(found.traces.verdict(), Verdict::Decided);
}

TEST(PlantedFaultsReal, AStaleCacheRowIsFound) {
  const Found found = look_at("stale cache row", {.fault = Fault::StaleRow});
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_GT(found.forced.all_differing(), 0);
  EXPECT_NE(found.traces.verdict(), Verdict::Same);
}

TEST(PlantedFaultsReal, ASwappedTieRuleIsFound) {
  const Planted ties = {.grid = 0.25f};
  expect_nothing(look_at("ties, one rule", ties, {}, 6, 1));
  const Found found = look_at("swapped tie rule", ties, {.last_of_equals = true}, 6, 1);
  EXPECT_EQ(found.drift.outcome, DriftOutcome::Different);
  EXPECT_EQ(found.traces.verdict(), Verdict::Undecided);
  EXPECT_EQ(found.traces.differing, found.traces.differing_by_gap[0]);
}

}  // namespace
}  // namespace paceline
