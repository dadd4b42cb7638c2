// SmolLM2-135M-Instruct as users run it: equal to transformers where it must be, and the same bytes
// whatever the depth, the drafter, the threads and the instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "kernels/argmax.h"
#include "kernels/choose.h"
#include "measure/reading.h"
#include "models/head_support.h"
#include "spec/sampling.h"
#include "spec/store_builder.h"
#include "tests/real_runs.h"
#include "tests/toy_runs.h"

namespace paceline {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// script/test sets the path; without it these tests fail, they do not pass by silence.
fs::path model_file() {
  const char* path = std::getenv("PACELINE_SMOLLM2");
  EXPECT_NE(path, nullptr) << "set PACELINE_SMOLLM2 to what `script/fetch smollm2` prints";
  return path == nullptr ? "" : path;
}

const Json& golden() {
  static const Json json = [] {
    std::ifstream file(fs::path(PACELINE_SOURCE_DIR) / "tests/golden/smollm2_greedy.json");
    return Json::parse(file);
  }();
  return json;
}

Engine open(const EngineOptions& options) { return open_real_model(model_file(), options); }

TEST(RealModel, GreedyInFloat32EqualsTransformers) {
  const Engine engine = open({.weights = WeightsType::F32});
  int tokens = 0;
  for (const Json& entry : golden()["greedy"]) {
    const std::vector<TokenId> wanted = entry["token_ids"];
    const auto got = generate(
        engine,
        {.prompt = entry["prompt_ids"], .max_tokens = static_cast<int>(wanted.size()), .depth = 0});
    const auto [at, other] = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
    if (at == got.end() && other == wanted.end()) {
      tokens += static_cast<int>(wanted.size());
      continue;
    }
    // A difference is allowed at a near-tie only, and shown.
    ASSERT_NE(other, wanted.end()) << entry["id"] << ": longer than the reference";
    const auto index = static_cast<size_t>(other - wanted.begin());
    const double gap = entry["gaps"][index];
    std::printf("%s: first difference at token %zu, where the top two are %.2e apart\n",
                entry["id"].get<std::string>().c_str(), index, gap);
    EXPECT_LT(gap, 1e-3) << entry["id"] << " token " << index;
    tokens += static_cast<int>(index);
  }
  RecordProperty("equal_tokens", tokens);
}

TEST(RealModel, LogitsInFloat32EqualTransformers) {
  const Engine engine = open({.weights = WeightsType::F32});
  const Json& top = golden()["top"];
  const std::vector<TokenId> ids = top["prompt_ids"];
  const int n = static_cast<int>(ids.size());
  const Model& model = engine.model();
  auto state = *model.make_state(n, CacheType::F32);
  auto workspace = *model.make_workspace(n, n);
  Block block(n);
  block.reset(0);
  for (const TokenId id : ids) block.add(id);
  const TrunkOut out = model.forward(block, *state, LogitRows::All, *workspace);
  double largest = 0;
  double worst = 0;
  const std::vector<int> positions = top["positions"];
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto row = out.logits.row(positions[i]);
    const std::vector<std::pair<TokenId, double>> wanted = top["logits"][i];
    ASSERT_EQ(wanted.size(), 20u);
    EXPECT_EQ(argmax(row), wanted[0].first) << "position " << positions[i];
    for (const auto& [id, value] : wanted) {
      largest = std::max(largest, std::fabs(value));
      worst = std::max(worst, std::fabs(static_cast<double>(row[id]) - value));
    }
  }
  EXPECT_LE(worst / largest, 1e-4);
  std::printf("relative logit error %.1e over %zu positions\n", worst / largest, positions.size());
}

TEST(RealModel, PerplexityOfTheQuantisedFileIsThatOfItsValues) {
  std::ifstream file(fs::path(PACELINE_SOURCE_DIR) / "tests/golden/perplexity_text.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Engine native = open({});
  const Engine wide = open({.weights = WeightsType::F32});
  const Json& wanted = golden()["perplexity"];
  std::vector<TokenId> ids;
  native.tokenizer()->encode(text, /*read_specials=*/false, ids);
  ASSERT_EQ(ids.size(), wanted["n_tokens"].get<size_t>());
  const std::vector<TokenId> head = wanted["ids_head"];
  EXPECT_TRUE(std::equal(head.begin(), head.end(), ids.begin()));
  const double nll = *measure::mean_nll(native, ids);
  const double nll_wide = *measure::mean_nll(wide, ids);
  EXPECT_NEAR(nll_wide, wanted["mean_nll"].get<double>(), 1e-4);
  EXPECT_NEAR(std::exp(nll) / std::exp(nll_wide), 1.0, 0.01)
      << std::exp(nll) << " against " << std::exp(nll_wide);
  std::printf("perplexity %.4f native, %.4f float32\n", std::exp(nll), std::exp(nll_wide));
}

// The prompts of tools/prompts/parity.jsonl: four languages and code.
std::vector<std::vector<TokenId>> parity_prompts(const Engine& engine) {
  std::ifstream file(fs::path(PACELINE_SOURCE_DIR) / "tools/prompts/parity.jsonl");
  std::vector<std::vector<TokenId>> prompts;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const ChatMessage message{"user", Json::parse(line)["prompt"]};
    prompts.push_back(*engine.encode_chat({&message, 1}));
  }
  EXPECT_EQ(prompts.size(), 8u);
  return prompts;
}

// All requests side by side, in shared passes.
std::vector<std::vector<TokenId>> generate_together(const Engine& engine,
                                                    const std::vector<Request>& requests) {
  std::vector<Generation> generations;
  generations.reserve(requests.size());
  for (const Request& request : requests) generations.push_back(*engine.start(request));
  std::vector<Generation*> running;
  running.reserve(generations.size());
  for (Generation& generation : generations) running.push_back(&generation);
  while (!running.empty()) {
    Generation::step_together(running);
    std::erase_if(running, [](const Generation* generation) { return generation->done(); });
  }
  std::vector<std::vector<TokenId>> all;
  all.reserve(generations.size());
  for (const Generation& generation : generations) {
    EXPECT_FALSE(generation.error());
    std::vector<TokenId>& ids = all.emplace_back();
    for (const EmittedToken& token : generation.tokens()) ids.push_back(token.id);
  }
  return all;
}

// Every depth, drafts that are all right, and drafts with every third one wrong; beside each other,
// against the plain run alone.
TEST(RealModel, SpeculativeTextIsThePlainText) {
  std::vector<std::vector<TokenId>> plain;
  for (const int threads : {2, 1}) {
    const int tokens = threads == 1 ? 64 : 256;
    const Engine engine = open({.threads = threads});
    const auto prompts = parity_prompts(engine);
    for (size_t i = 0; i < prompts.size(); ++i) {
      Request request{.prompt = prompts[i], .max_tokens = tokens, .ignore_eos = true, .depth = 0};
      const auto alone = generate(engine, request);
      if (plain.size() == i) plain.push_back(alone);
      plain[i].resize(tokens);
      ASSERT_EQ(alone, plain[i]) << "prompt " << i << ", " << threads << " threads";
      std::vector<Request> requests;
      for (request.depth = 1; request.depth <= 8; ++request.depth) requests.push_back(request);
      request.depth = 5;
      request.drafter = DrafterKind::Scripted;
      request.script = plain[i];
      requests.push_back(request);
      for (size_t t = 2; t < request.script.size(); t += 3)
        request.script[t] = (request.script[t] + 1) % 49152;
      requests.push_back(request);
      const auto texts = generate_together(engine, requests);
      for (size_t k = 0; k < texts.size(); ++k)
        ASSERT_EQ(texts[k], plain[i]) << "prompt " << i << ", run " << k << ", " << threads;
    }
  }
}

// Trees of 1 to 31 drafts of any shape, with the right path at changing places among wrong ones and
// branches that share tokens, under both accept rules.
TEST(RealModel, RandomTreesWriteThePlainText) {
  int64_t on_branches = 0;  // rounds whose path is not the block's first rows
  std::vector<std::vector<TokenId>> plain;
  for (const int threads : {2, 1}) {
    const Engine engine = open({.threads = threads});
    const Model& model = engine.model();
    const auto prompts = parity_prompts(engine);
    for (size_t i = 0; i < 2 * prompts.size(); ++i) {
      const int nodes = std::min(kMostNodes, 1 << (i % 6));
      SampledRule sampled({.temperature = 0.8, .seed = 40 + i}, model.info().vocab_size,
                          *kernel_tables().back());
      ToyRunOptions options{.prompt = prompts[i / 2],
                            .budget = 256,
                            .depth = kMostDrafts,
                            .nodes = nodes,
                            .rule = i % 2 == 0 ? nullptr : &sampled};
      if (threads == 2) plain.push_back(toy_plain(model, options));
      RandomTreeDrafter drafter(plain[i], static_cast<unsigned>(i));
      const ToyRun run = toy_run(model, drafter, options);
      ASSERT_EQ(run.error, "");
      plain[i].resize(run.tokens.size());
      ASSERT_EQ(run.tokens, plain[i]) << "run " << i << ", " << threads << " threads";
      for (const RoundStats& round : run.rounds)
        on_branches += round.n_accepted > 0 && round.standing().back() + 1 > round.n_accepted;
    }
  }
  EXPECT_GT(on_branches, 200);
}

// The trees of the drafters themselves, several sequences in one pass.
TEST(RealModel, TheUnionsTreesWriteThePlainText) {
  const fs::path heads = fs::path(PACELINE_SOURCE_DIR) / "heads";
  for (const int threads : {2, 1}) {
    const Engine engine = open({.threads = threads,
                                .head = heads / "smollm2-135m-instruct-q4_1.safetensors",
                                .store = heads / "smollm2-135m-instruct-q4_1.plstore"});
    for (const auto& prompt : parity_prompts(engine)) {
      for (const double temperature : {0.0, 0.8}) {
        Request request{.prompt = prompt, .max_tokens = threads == 2 ? 256 : 64, .depth = 0};
        request.sampling.temperature = temperature;
        request.sampling.seed = 9;
        const auto plain = generate(engine, request);
        std::vector<Request> requests;
        for (const DraftShape& shape : {DraftShape{1, 3}, {4, 8}, {8, 15}, {16, 31}, {}}) {
          request.depth = shape.depth;
          request.tree = shape.tree;
          requests.push_back(request);
        }
        for (const auto& text : generate_together(engine, requests)) ASSERT_EQ(text, plain);
      }
    }
  }
}

// A head whose drafts hardly ever stand, over a shortlist and behind either tap.
TEST(RealModel, ADraftHeadChangesNoToken) {
  for (const Tap tap : {Tap::After, Tap::Before}) {
    Engine engine = open({.threads = 2});
    HeadConfig config;
    config.tap = tap;
    for (TokenId id = 0; id < 8192; ++id) config.draft_vocabulary.push_back(id);
    const auto used = engine.use_head(random_head(engine.model(), config, 1, 0.05f));
    ASSERT_TRUE(used) << used.error().message;
    const auto prompts = parity_prompts(engine);
    for (size_t i = 0; i < prompts.size(); i += 5) {
      Request request{.prompt = prompts[i], .max_tokens = 48, .ignore_eos = true, .depth = 0};
      request.sampling.temperature = i % 2 == 0 ? 0.0 : 0.8;
      const auto plain = generate(engine, request);
      request.drafter = DrafterKind::Mtp;
      for (const int depth : {1, 4, kAutoDepth}) {
        request.depth = depth;
        EXPECT_EQ(generate(engine, request), plain) << "prompt " << i << ", depth " << depth;
      }
    }
  }
}

// The trunk's hiddens of a run, in the order of positions.
class KeptRows : public RowSink {
 public:
  Tap tap() const override { return Tap::After; }
  void rows(std::span<const TokenId> next, Mat<const float> hidden) override {
    (void)next;
    const auto values = std::span(hidden.data, static_cast<size_t>(hidden.rows) * hidden.cols);
    values_.insert(values_.end(), values.begin(), values.end());
  }
  void chosen(TokenId /*id*/, bool /*own_top1*/) override {}
  void drafted(std::span<const Draft> /*drafts*/, int /*n_accepted*/) override {}
  void read(int row, std::span<float> out) const {
    std::copy_n(values_.begin() + static_cast<ptrdiff_t>(row) * std::ssize(out), out.size(),
                out.begin());
  }

 private:
  std::vector<float> values_;
};

// Lookup, a store of other answers, a head of random weights, and all of them together.
TEST(RealModel, ReplayCountsWhatTheLiveRunCounted) {
  Engine engine = open({.threads = 2, .use_head = false, .use_store = false});
  const auto prompts = parity_prompts(engine);
  StoreBuilder builder(engine.model_sha256(), engine.model().info().vocab_size);
  Request request{.prompt = prompts[0], .max_tokens = 64, .ignore_eos = true, .depth = 0};
  for (size_t i = 1; i < prompts.size(); i += 2) {
    request.prompt = prompts[i];
    builder.add(generate(engine, request));
  }
  const std::string file = testing::TempDir() + "real.plstore";
  ASSERT_TRUE(builder.save(file));
  engine.use_store(*NgramStore::open(file));
  ASSERT_TRUE(engine.use_head(random_head(engine.model(), HeadConfig{}, 1, 0.05f)));

  for (size_t i = 0; i < prompts.size(); i += 4) {
    request.prompt = prompts[i];
    request.sampling.temperature = i % 8 == 0 ? 0.0 : 0.7;
    request.drafter = DrafterKind::None;
    request.depth = 0;
    const auto plain = generate(engine, request);
    for (const auto kind : {DrafterKind::Lookup, DrafterKind::Mtp, DrafterKind::Union}) {
      KeptRows rows;
      request.drafter = kind;
      request.depth = 4;
      request.row_sink = &rows;
      auto live = engine.start(request);
      ASSERT_TRUE(live);
      while (!live->done()) ASSERT_TRUE(live->step());
      request.row_sink = nullptr;
      std::vector<TokenId> text = request.prompt;
      for (const EmittedToken& token : live->tokens()) text.push_back(token.id);
      EXPECT_TRUE(std::equal(plain.begin(), plain.end(), text.begin() + std::ssize(prompts[i])));
      const auto counts =
          engine.replay({.tokens = text,
                         .n_prompt = static_cast<int>(prompts[i].size()),
                         .budget = request.max_tokens,
                         .hidden = [&](int row, std::span<float> out) { rows.read(row, out); },
                         .dim = engine.model().info().dim},
                        request);
      ASSERT_TRUE(counts);
      const RoundCounts want = live->stats();
      EXPECT_EQ(*counts, want) << "prompt " << i << ", " << live->drafter();
      EXPECT_GT(want.drafted_by_depth[0], 0);
    }
  }
}

// 32 tokens of each prompt, plain and with drafts, on every instruction set of this machine.
TEST(RealModel, EveryInstructionSetWritesTheSameText) {
  const char* forced = std::getenv("PACELINE_ISA");
  const std::string before = forced == nullptr ? "" : forced;
  std::vector<std::vector<TokenId>> expected;
  for (const KernelTable* table : kernel_tables()) {
    setenv("PACELINE_ISA", table->variant, 1);
    const Engine engine = open({.numerics = Numerics::Portable});
    ASSERT_EQ(engine.model().info().isa, table->variant);
    const auto prompts = parity_prompts(engine);
    for (size_t i = 0; i < prompts.size(); ++i) {
      Request request{.prompt = prompts[i], .max_tokens = 32, .ignore_eos = true, .depth = 0};
      const auto plain = generate(engine, request);
      if (expected.size() == i) expected.push_back(plain);
      EXPECT_EQ(plain, expected[i]) << table->variant << ", prompt " << i;
      request.depth = 4;
      request.drafter = DrafterKind::Scripted;
      request.script = expected[i];
      for (size_t t = 5; t < request.script.size(); t += 7) request.script[t] = 0;
      request.allow_inexact = true;  // a probe on scalar kernels would take a minute
      EXPECT_EQ(generate(engine, request), expected[i])
          << table->variant << ", drafts, prompt " << i;
    }
  }
  if (forced == nullptr)
    unsetenv("PACELINE_ISA");
  else
    setenv("PACELINE_ISA", before.c_str(), 1);
}

// The negative control on the same file: kernels that break the row rule are found out, and then
// nothing drafts.
TEST(RealModel, WideKernelsAreFoundOut) {
  const Engine wide = open({.wide_kernels = true});
  EXPECT_EQ(wide.gate().verdict, Verdict::Inexact);
  const auto generation = wide.start({.prompt = parity_prompts(wide)[0], .depth = 4});
  ASSERT_TRUE(generation);
  EXPECT_TRUE(generation->declined());
  EXPECT_EQ(open({}).gate().verdict, Verdict::Exact);
}

}  // namespace
}  // namespace paceline
