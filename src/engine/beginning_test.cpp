// Prompts that go on from a beginning which was read once for all of them.
#include "engine/beginning.h"

#include <gtest/gtest.h>

#include "models/golden_support.h"
#include "tests/toy_engine.h"

namespace paceline {
namespace {

// The bytes of every row that was handed over, and what followed it.
class Bytes final : public RowSink {
 public:
  explicit Bytes(Tap tap) : tap_(tap) {}
  Tap tap() const override { return tap_; }
  void rows(std::span<const TokenId> next, Mat<const float> hidden) override {
    EXPECT_EQ(static_cast<int>(next.size()), hidden.rows);
    following.insert(following.end(), next.begin(), next.end());
    const auto n = static_cast<size_t>(hidden.rows) * static_cast<size_t>(hidden.cols);
    const auto bytes = std::as_bytes(std::span(hidden.data, n));
    rows_seen.insert(rows_seen.end(), bytes.begin(), bytes.end());
  }
  void chosen(TokenId /*id*/, bool /*own_top1*/) override {}
  void drafted(std::span<const Draft> /*drafts*/, int /*n_accepted*/) override {}

  std::vector<TokenId> following;
  std::vector<std::byte> rows_seen;

 private:
  Tap tap_;
};

constexpr int kPrompt = 120;

Request asked_of(const Golden& golden, RowSink& sink) {
  Request request{.prompt = {golden.ids.begin(), golden.ids.begin() + kPrompt},
                  .max_tokens = 20,
                  .ignore_eos = true,
                  .depth = 0};
  request.row_sink = &sink;
  return request;
}

TEST(Beginning, GivesRowsAndTextOfAPromptThatIsReadWhole) {
  for (const char* name : {"llama/plain", "gemma3/objects", "mistral/window"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(goldens() / name);
    const auto engine = Engine::open(goldens() / name, {.threads = 2});
    ASSERT_TRUE(engine) << engine.error().message;
    const bool slides = engine->model().info().n_sliding > 0;
    for (const Tap tap : {Tap::After, Tap::Before}) {
      Bytes whole(tap);
      const Answer expected = answer(*engine, asked_of(golden, whole));
      ASSERT_EQ(expected.tokens.size(), 20u);
      for (const int length : {1, 15, 16, 31, 63, 64, 65, 100, kPrompt - 1}) {
        SCOPED_TRACE(length);
        Bytes taken(tap);
        Request request = asked_of(golden, taken);
        const auto beginning =
            engine->read_beginning(std::span(request.prompt).first(static_cast<size_t>(length)));
        ASSERT_TRUE(beginning);
        request.beginning = *beginning;
        const Answer got = answer(*engine, request);
        EXPECT_EQ(got.tokens, expected.tokens);
        EXPECT_EQ(taken.following, whole.following);
        EXPECT_EQ(taken.rows_seen, whole.rows_seen);
        // Layers with windows share whole pages of 64 positions only.
        EXPECT_EQ(got.stats.reused_tokens, slides ? length / 64 * 64 : length);
      }
    }
  }
}

// A ring of 24 positions and a block holds 256 slots: most of these beginnings are forgotten.
TEST(Beginning, MayBeLongerThanWhatWindowsRemember) {
  const auto engine = Engine::open(goldens() / "mistral/window", {.threads = 2});
  ASSERT_TRUE(engine) << engine.error().message;
  Bytes whole(Tap::After);
  Request request{.prompt = {}, .max_tokens = 20, .ignore_eos = true, .depth = 0};
  for (int i = 0; i < 450; ++i) request.prompt.push_back(1 + (i * i + 3 * i) % 41);
  request.row_sink = &whole;
  const Answer expected = answer(*engine, request);
  for (const int length : {319, 384, 449}) {
    SCOPED_TRACE(length);
    Bytes taken(Tap::After);
    Request behind = request;
    behind.row_sink = &taken;
    const auto beginning =
        engine->read_beginning(std::span(request.prompt).first(static_cast<size_t>(length)));
    ASSERT_TRUE(beginning);
    behind.beginning = *beginning;
    const Answer got = answer(*engine, behind);
    EXPECT_EQ(got.tokens, expected.tokens);
    EXPECT_EQ(taken.following, whole.following);
    EXPECT_EQ(taken.rows_seen, whole.rows_seen);
    EXPECT_EQ(got.stats.reused_tokens, length / 64 * 64);
  }
}

TEST(Beginning, IsReadAnewWithKernelsThatBreakTheRowRule) {
  const Golden golden = read_golden(goldens() / "llama/plain");
  const auto engine = Engine::open(goldens() / "llama/plain", {.threads = 1, .wide_kernels = true});
  ASSERT_TRUE(engine);
  Bytes whole(Tap::After);
  const Answer expected = answer(*engine, asked_of(golden, whole));
  Bytes taken(Tap::After);
  Request request = asked_of(golden, taken);
  request.beginning = *engine->read_beginning(std::span(request.prompt).first(50));
  const Answer got = answer(*engine, request);
  EXPECT_EQ(got.stats.reused_tokens, 0);
  EXPECT_EQ(got.tokens, expected.tokens);
  EXPECT_EQ(taken.rows_seen, whole.rows_seen);
}

TEST(Beginning, RefusesAPromptThatGoesOnOtherwise) {
  const Golden golden = read_golden(goldens() / "llama/plain");
  const auto engine = Engine::open(goldens() / "llama/plain", {.threads = 1});
  ASSERT_TRUE(engine);
  Bytes sink(Tap::After);
  Request request = asked_of(golden, sink);
  request.beginning = *engine->read_beginning(request.prompt);  // nothing is left to read
  const auto same = engine->start(request);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, ErrorCode::BadUsage);
  request.beginning = *engine->read_beginning(std::span(request.prompt).subspan(1, 9));
  const auto other = engine->start(request);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "the prompt does not go on from the beginning that was read for it");
  const std::vector<TokenId> too_long(static_cast<size_t>(engine->context()) + 1, 1);
  const auto long_one = engine->read_beginning(too_long);
  ASSERT_FALSE(long_one);
  EXPECT_EQ(long_one.error().code, ErrorCode::TooLarge);
  const std::vector<TokenId> beyond = {engine->model().info().vocab_size};
  EXPECT_FALSE(engine->read_beginning(beyond)) << "an id that the model does not have";
  EXPECT_FALSE(engine->read_beginning({}));
}

}  // namespace
}  // namespace paceline
