// Engines over the same weights that run at the same time.
#include <gtest/gtest.h>

#include <future>

#include "engine/headed_golden.h"
#include "tests/toy_engine.h"

namespace paceline {
namespace {

constexpr int kAnswers = 6;

Request asked(int i, DrafterKind drafter) {
  Request request{.prompt = {}, .max_tokens = 40, .ignore_eos = true, .depth = 3, .tree = 0};
  for (int p = 0; p < 20 + 30 * i; ++p) request.prompt.push_back(1 + (p * p + i * p + 3) % 37);
  request.drafter = drafter;
  request.allow_inexact = true;  // asks no gate, whose probes would be the slowest part
  if (drafter == DrafterKind::None) request.depth = 0;
  return request;
}

std::vector<std::vector<TokenId>> answers(const Engine& engine, DrafterKind drafter) {
  std::vector<std::vector<TokenId>> all;
  all.reserve(kAnswers);
  for (int i = 0; i < kAnswers; ++i) all.push_back(answer(engine, asked(i, drafter)).tokens);
  return all;
}

TEST(EngineBeside, WritesTheSameAtTheSameTime) {
  for (const char* name : {"llama/plain", "mistral/window", "gemma3/objects"}) {
    SCOPED_TRACE(name);
    const Engine engine = headed_golden(name);
    const auto expected = answers(headed_golden(name), DrafterKind::None);
    for (const DrafterKind drafter : {DrafterKind::None, DrafterKind::Mtp}) {
      std::vector<std::future<std::vector<std::vector<TokenId>>>> others;
      others.reserve(3);
      for (int i = 0; i < 3; ++i)
        others.push_back(std::async(std::launch::async, [&engine, drafter] {
          const auto other = engine.beside(1);
          check(other.has_value(), "a dense trunk goes on beside itself");
          return answers(*other, drafter);
        }));
      EXPECT_EQ(answers(engine, drafter), expected);
      for (auto& other : others) EXPECT_EQ(other.get(), expected);
    }
  }
}

TEST(EngineBeside, OutlivesTheOneThatItWasMadeOf) {
  const auto other = [] { return headed_golden("llama/plain").beside(2); }();
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->threads(), 2);
  ASSERT_NE(other->head(), nullptr);
  EXPECT_EQ(answers(*other, DrafterKind::Mtp),
            answers(headed_golden("llama/plain"), DrafterKind::None));
}

TEST(EngineBeside, GoesOnFromABeginningThatAnotherRead) {
  const Engine engine = headed_golden("llama/plain");
  const auto other = engine.beside(1);
  ASSERT_TRUE(other);
  Request request = asked(4, DrafterKind::None);
  const std::vector<TokenId> expected = answer(engine, request).tokens;
  const auto beginning = engine.read_beginning(std::span(request.prompt).first(70));
  ASSERT_TRUE(beginning);
  request.beginning = *beginning;
  const Answer got = answer(*other, request);
  EXPECT_EQ(got.tokens, expected);
  EXPECT_EQ(got.stats.reused_tokens, 70);
}

TEST(EngineBeside, TakesTheVerdictOfTheGateAlong) {
  const Engine engine = headed_golden("llama/plain");
  const GateVerdict verdict = engine.gate();
  const auto other = engine.beside(1);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->gate().verdict, verdict.verdict);
  EXPECT_EQ(other->gate().seconds, verdict.seconds);  // another probe would have taken its own
}

TEST(EngineBeside, IsRefusedWhereATrunkRunsOnePassAtATime) {
  const auto other = toy_engine().beside(1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace paceline
