#include "engine/probe.h"

#include <gtest/gtest.h>

#include "engine/gate.h"
#include "tests/toy_engine.h"

namespace paceline {
namespace {

std::vector<TokenId> some_text(int n) {
  std::vector<TokenId> text(n);
  for (int i = 0; i < n; ++i) text[i] = (i * i + 3 * i) % 300;
  return text;
}

ProbeResult probe_toy(const ToyOptions& toy, int context = 400, ProbeOptions options = {}) {
  const ToyModel model(toy);
  const auto result = probe(model, some_text(333), context, CacheType::F32, options);
  check(result.has_value(), "a toy's probe has memory");
  return *result;
}

TEST(Probe, ATrunkThatKeepsTheRowRuleIsExact) {
  const ProbeResult result = probe_toy({});
  EXPECT_EQ(result.verdict, Verdict::Exact);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.positions, 256);
  EXPECT_EQ(result.readers.size(), 5u);
  EXPECT_GT(result.bytes, 256 * 5 * 300 * 4);
  EXPECT_FALSE(result.first_difference);
  for (const int context : {64, 65, 100})
    EXPECT_EQ(probe_toy({}, context).verdict, Verdict::Exact) << context;
}

TEST(Probe, TheLongOneWalksThreeTimes) {
  ProbeOptions options = long_probe();
  options.positions = 300;
  const ProbeResult result = probe_toy({}, 1000, options);
  EXPECT_EQ(result.verdict, Verdict::Exact);
  EXPECT_EQ(result.positions, 900);
  EXPECT_EQ(result.readers.size(), 16u);
}

// Negative controls: every fault of this kind is found, and named.
TEST(Probe, FindsARollbackThatWasSkipped) {
  const ProbeResult result = probe_toy({.skips_rollback = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->tensor, "logits");
}

TEST(Probe, FindsAStaleCacheRow) {
  // The rows of a rejected block stay where the next block's should be; that the next token
  // depends on them shows in the logits or in the bytes.
  const ProbeResult result = probe_toy({.keeps_stale_row = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
  ASSERT_TRUE(result.first_difference);
  EXPECT_GT(result.first_difference->width, 1);
}

TEST(Probe, FindsASumSplitByThreads) {
  const ProbeResult result = probe_toy({.splits_by_threads = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
  ASSERT_TRUE(result.first_difference);
  EXPECT_NE(result.first_difference->reader.find("one thread"), std::string::npos);
  EXPECT_NE(result.reason.find("logits of position"), std::string::npos);
}

TEST(Probe, FindsANeighbourThatMatters) {
  const ProbeResult result = probe_toy({.feels_neighbours = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
  ASSERT_TRUE(result.first_difference);
  EXPECT_NE(result.first_difference->reader.find("beside another"), std::string::npos);
}

TEST(Probe, FindsADispatchByRows) {
  const ProbeResult result = probe_toy({.feels_width = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
}

TEST(Probe, CanBeStopped) {
  const ToyModel model;
  int passes = 0;
  ProbeOptions options;
  options.stop = [&] { return ++passes > 20; };
  const auto result = probe(model, some_text(300), 400, CacheType::F32, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict, Verdict::NotRun);
  EXPECT_EQ(result->reason, "interrupted");
  EXPECT_GE(result->positions, 0);
}

TEST(Probe, AContextThatIsTooShortProvesNothing) {
  const ToyModel wrong({.feels_width = true});
  const ToyModel right;
  for (const int context : {1, 2, 3, 17, 63}) {
    for (const ToyModel* model : {&wrong, &right}) {
      const auto result = probe(*model, some_text(300), context, CacheType::F32, {});
      ASSERT_TRUE(result);
      EXPECT_EQ(result->verdict, Verdict::NotRun) << context;
      EXPECT_NE(result->reason, "");
      EXPECT_TRUE(result->readers.empty());
    }
  }
  EXPECT_EQ(probe(wrong, some_text(300), 64, CacheType::F32, {})->verdict, Verdict::Inexact);
  const auto least = probe(right, some_text(300), 64, CacheType::F32, {});
  EXPECT_EQ(least->verdict, Verdict::Exact);
  EXPECT_EQ(least->positions, 32);
}

// No path to speculation leads round the gate: whatever drafts, and however deep, the run behind
// an inexact trunk is plain, and says so.
TEST(Gate, AnInexactTrunkRunsPlain) {
  const ToyOptions toy = {.feels_width = true};
  const Engine engine = toy_engine(toy);
  ASSERT_EQ(engine.gate().verdict, Verdict::Inexact);
  Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 60};
  const Answer plain = plain_answer(engine, request);
  for (const int depth : {1, 2, 4, 8, 16, kAutoDepth}) {
    for (const auto kind : {DrafterKind::Auto, DrafterKind::Lookup, DrafterKind::Scripted}) {
      request.depth = depth;
      request.drafter = kind;
      request.script = plain.tokens;
      auto generation = engine.start(request);
      ASSERT_TRUE(generation);
      EXPECT_TRUE(generation->declined());
      EXPECT_STREQ(generation->drafter(), "none");
      const Answer got = answer(engine, request);
      EXPECT_EQ(got.tokens, plain.tokens);
      EXPECT_EQ(got.stats.proposed, 0);
      EXPECT_EQ(got.stats.rounds, got.stats.round_tokens) << "a draft was verified";
    }
  }
  EXPECT_NE(engine.gate().reason, "");
}

TEST(Gate, IsOverruledByWish) {
  const Engine engine = toy_engine({.feels_width = true});
  Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 60};
  const Answer plain = plain_answer(engine, request);
  request = scripted(request, plain.tokens, 4);
  request.allow_inexact = true;
  const Answer got = answer(engine, request);
  EXPECT_EQ(got.drafter, "scripted");
  EXPECT_GT(got.stats.proposed, 0);
  EXPECT_NE(got.tokens, plain.tokens) << "the control forks";
}

TEST(Gate, OpensForAnExactTrunk) {
  const Engine engine = toy_engine({});
  Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 60};
  request = scripted(request, plain_answer(engine, request).tokens, 4);
  const auto generation = engine.start(request);
  ASSERT_TRUE(generation);
  EXPECT_FALSE(generation->declined());
  EXPECT_EQ(engine.gate().verdict, Verdict::Exact);
  EXPECT_FALSE(engine.gate().cached);
}

}  // namespace
}  // namespace paceline
