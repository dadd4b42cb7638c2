// A round allocates nothing: every allocation of this program is counted while one runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "models/head_support.h"
#include "tests/toy_store.h"

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

// Not inlined: g++ would see malloc meet delete and warn of a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++g_allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t align) {
  ++g_allocations;
  const auto a = static_cast<size_t>(align);
  void* memory = std::aligned_alloc(a, (bytes + a - 1) / a * a);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace paceline {
namespace {

// The first step, which is the prefill, is not a round.
int64_t allocations_in_rounds(const Engine& engine, const Request& request, int64_t* rounds) {
  auto generation = engine.start(request);
  check(generation.has_value(), "the request is a good one");
  int64_t allocations = 0;
  check(generation->step().has_value(), "a prefill goes well");
  while (!generation->done()) {
    const int64_t before = g_allocations;
    const auto pieces = generation->step();
    allocations += g_allocations - before;
    check(pieces.has_value(), "a step goes well");
  }
  *rounds = generation->stats().rounds;
  return allocations;
}

TEST(Allocations, TheCounterCounts) {
  const int64_t before = g_allocations;
  auto* memory = new int(5);
  EXPECT_EQ(g_allocations, before + 1);
  delete memory;
}

TEST(Allocations, NoneInAnyRound) {
  auto pieces = letter_pairs(300);
  pieces[0] = std::string(100, 'x');  // a token longer than a small string holds in itself
  Engine engine = toy_engine({.speech = 8, .memory = 2, .novelty = 5}, {}, 2000,
                             std::make_unique<ToyTokenizer>(pieces));
  engine.use_store(toy_store(engine));
  Request request{.prompt = {3, 1, 4}, .max_tokens = 500, .stop = {"no such text", "xx!", "ab!"}};
  const Answer plain = plain_answer(engine, request);
  ASSERT_NE(plain.text.find("xxxx"), std::string::npos);
  engine.costs();
  for (const int depth : {0, 1, 4, 8, 16, kAutoDepth}) {
    for (const auto kind :
         {DrafterKind::None, DrafterKind::Lookup, DrafterKind::Scripted, DrafterKind::Union}) {
      request.depth = depth;
      request.drafter = kind;
      request.script = plain.tokens;
      for (size_t i = 0; i < request.script.size(); i += 7) request.script[i] = 9;
      int64_t rounds = 0;
      EXPECT_EQ(allocations_in_rounds(engine, request, &rounds), 0) << "depth " << depth;
      EXPECT_GT(rounds, 20);
    }
  }
}

TEST(Allocations, NoneWhereTokensAreDrawn) {
  const Engine engine = toy_engine({.speech = 8, .memory = 2, .novelty = 5, .levels = 512});
  const SamplingOptions everything{.repetition_penalty = 1.1,
                                   .frequency_penalty = 0.2,
                                   .presence_penalty = 0.1,
                                   .logit_bias = {{3, 1}, {200, 5}},
                                   .temperature = 1.5,
                                   .top_k = 250,
                                   .top_p = 0.999,
                                   .min_p = 1e-6};
  const SamplingOptions no_top_k{.temperature = 30, .top_p = 0.99};
  for (const SamplingOptions& sampling : {everything, no_top_k}) {
    Request request{.prompt = {3, 1, 4}, .max_tokens = 300, .sampling = sampling};
    request.script = plain_answer(engine, request).tokens;
    for (size_t i = 0; i < request.script.size(); i += 7) request.script[i] = 9;
    for (const int depth : {0, 4, 16}) {
      for (const auto kind : {DrafterKind::Lookup, DrafterKind::Scripted}) {
        request.depth = depth;
        request.drafter = kind;
        int64_t rounds = 0;
        EXPECT_EQ(allocations_in_rounds(engine, request, &rounds), 0) << "depth " << depth;
        EXPECT_GT(rounds, 20);
      }
    }
  }
}

// The same with a real trunk: products, attention, caches and threads included.
TEST(Allocations, NoneInARealTrunksRounds) {
  const auto golden = std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/golden/llama";
  for (const char* checkpoint : {"gguf_quant/model.gguf", "f16"}) {
    const auto engine = Engine::open(golden / checkpoint, {.threads = 2});
    ASSERT_TRUE(engine) << engine.error().message;
    Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 120, .ignore_eos = true};
    const Answer plain = plain_answer(*engine, request);
    ASSERT_EQ(plain.tokens.size(), 120u);
    engine->costs();
    for (const int depth : {0, 4, 16, kAutoDepth}) {
      for (const auto kind : {DrafterKind::Lookup, DrafterKind::Scripted}) {
        request.depth = depth;
        request.drafter = kind;
        request.script = plain.tokens;
        for (size_t i = 0; i < request.script.size(); i += 5) request.script[i] = 9;
        int64_t rounds = 0;
        EXPECT_EQ(allocations_in_rounds(*engine, request, &rounds), 0)
            << checkpoint << ", depth " << depth;
        EXPECT_GT(rounds, 5);
      }
    }
  }
}

// Trees through a trunk and through a head, the first of which takes the memory.
TEST(Allocations, NoneInPassesOverTrees) {
  const auto golden = std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/golden";
  for (const char* checkpoint : {"llama/gguf_quant/model.gguf", "gemma3/objects"}) {
    auto engine = Engine::open(golden / checkpoint, {.threads = 2, .use_head = false});
    ASSERT_TRUE(engine) << engine.error().message;
    const Model& model = engine->model();
    const auto head = made_head(model, random_head(model, {}, 3));
    auto state = *model.make_state(300, CacheType::F16);
    auto workspace = *model.make_workspace(kMostTreeRows, kMostTreeRows);
    auto head_state = *head->make_state(300, CacheType::F16);
    auto head_workspace = *head->make_workspace(kMostTreeRows);
    std::vector<float> hidden(static_cast<size_t>(kMostTreeRows) * model.info().dim, 0.5f);
    std::vector<int> parents, path;
    std::vector<TokenId> tokens;
    for (int row = 0; row < kMostTreeRows; ++row) {
      parents.push_back((row + 1) / 2 - 1);
      tokens.push_back(row);
    }
    for (int row = kMostTreeRows - 2; row >= 0; row = parents[row]) path.insert(path.begin(), row);
    Block block(kMostTreeRows);
    int64_t allocations = 0;
    for (int pass = 0; pass < 40; ++pass) {
      const int64_t before = g_allocations;
      block.reset(state->length());
      for (int row = 0; row < kMostTreeRows; ++row) block.add(tokens[row], parents[row]);
      model.forward(block, *state, LogitRows::All, *workspace);
      state->commit(path);
      head->forward({.hidden = {hidden.data(), kMostTreeRows, model.info().dim},
                     .tokens = tokens,
                     .parents = parents,
                     .n_next = kMostTreeRows,
                     .n_logits = kMostTreeRows},
                    *head_state, *head_workspace);
      head_state->commit(0, 1);
      if (pass > 0) allocations += g_allocations - before;
    }
    EXPECT_EQ(allocations, 0) << checkpoint;
    EXPECT_EQ(state->length(), 200);
  }
}

// A head's rounds, its reading of rows that were put aside among them.
TEST(Allocations, NoneInRoundsWithADraftHead) {
  const auto golden = std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/golden/llama";
  for (const char* checkpoint : {"gguf_quant/model.gguf", "f16"}) {
    for (const int modules : {1, 3}) {
      auto engine = Engine::open(golden / checkpoint, {.threads = 2, .use_head = false});
      ASSERT_TRUE(engine) << engine.error().message;
      HeadConfig config;
      config.modules = modules;
      ASSERT_TRUE(engine->use_head(random_head(engine->model(), config, 3)));
      engine->costs();
      Request request{.prompt = {3, 1, 4, 1, 5}, .max_tokens = 150, .ignore_eos = true};
      request.drafter = DrafterKind::Mtp;
      for (const int depth : {1, 4, 16, kAutoDepth}) {
        request.depth = depth;
        int64_t rounds = 0;
        EXPECT_EQ(allocations_in_rounds(*engine, request, &rounds), 0)
            << checkpoint << ", depth " << depth;
        EXPECT_GT(rounds, 5);
      }
    }
  }
}

}  // namespace
}  // namespace paceline
