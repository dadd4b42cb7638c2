#include "engine/probe.h"

#include <gtest/gtest.h>

#include "engine/gate.h"
#include "models/registry.h"
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
  EXPECT_EQ(result.readers.size(), 6u);
  EXPECT_GT(result.trees, 20);
  EXPECT_GT(result.tree_rows, 10 * result.trees);
  EXPECT_LT(result.tree_rows, 24 * result.trees);
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
  EXPECT_EQ(result.readers.size(), 18u);
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

TEST(Probe, FindsABranchThatReadsItsSibling) {
  const ProbeResult result = probe_toy({.mixes_siblings = true});
  EXPECT_EQ(result.verdict, Verdict::Inexact);
  ASSERT_TRUE(result.first_difference);
  EXPECT_NE(result.first_difference->reader.find("trees"), std::string::npos);
}

// A trunk that is exact on chains, and attends trees under a mask: their sums go by slots. Products
// of four rows and more keep the rule under the wide control, so nothing but attention differs.
class MaskedTrees final : public Model {
 public:
  explicit MaskedTrees(bool masks) : masks_(masks) {
    const auto checkpoint =
        Checkpoint::open(std::string(PACELINE_SOURCE_DIR) + "/tests/golden/llama/plain");
    check(checkpoint.has_value(), "the golden checkpoint opens");
    auto model = load_model(*checkpoint, {.weights = WeightsType::F32, .threads = 2});
    check(model.has_value(), "the golden checkpoint loads");
    model_ = std::move(*model);
  }
  const ModelInfo& info() const override { return model_->info(); }
  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType cache) const override {
    return model_->make_state(capacity, cache);
  }
  Result<std::unique_ptr<Workspace>> make_workspace(int rows, int logit_rows) const override {
    return model_->make_workspace(rows, logit_rows);
  }
  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override {
    int rows = 0;
    bool branches = false;
    for (const PassPart& part : parts) {
      rows += part.block->rows();
      branches = branches || part.block->depth() < part.block->rows();
    }
    workspace.wide_kernels = masks_ && branches && rows >= 4;
    model_->forward(parts, workspace);
  }

 private:
  bool masks_;
  std::unique_ptr<Model> model_;
};

TEST(Probe, FindsATreeThatIsSummedInTheOrderOfItsSlots) {
  for (const bool masks : {false, true}) {
    const MaskedTrees model(masks);
    std::vector<TokenId> text = some_text(333);
    for (TokenId& token : text) token %= model.info().vocab_size;
    const auto result = probe(model, text, 300, CacheType::F16, {});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->verdict, masks ? Verdict::Inexact : Verdict::Exact) << result->reason;
    if (!masks) continue;
    ASSERT_TRUE(result->first_difference);
    EXPECT_NE(result->first_difference->reader.find("trees"), std::string::npos);
  }
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
