#include "measure/reading.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "measure/cycle.h"
#include "tests/toy_engine.h"

namespace paceline::measure {
namespace {

// The toy's hiddens hold position and token.
class Rows final : public RowSink {
 public:
  Tap tap() const override { return Tap::After; }
  void rows(std::span<const TokenId> next, Mat<const float> hidden) override {
    for (int i = 0; i < hidden.rows; ++i) {
      EXPECT_EQ(hidden.row(i)[0], static_cast<float>(seen.size()));
      seen.push_back(static_cast<TokenId>(hidden.row(i)[1]));
    }
    following.insert(following.end(), next.begin(), next.end());
  }
  void chosen(TokenId /*id*/, bool is_top1) override { own_top1.push_back(is_top1); }
  void drafted(std::span<const Draft> /*drafts*/, int /*n_accepted*/) override { ++rounds; }

  std::vector<TokenId> seen;
  std::vector<TokenId> following;
  std::vector<bool> own_top1;
  int rounds = 0;
};

// 300 tokens that the toy itself writes behind one.
std::vector<TokenId> own_text(const Engine& engine) {
  Request request{.prompt = {7}, .max_tokens = 300, .depth = 0};
  std::vector<TokenId> text = {7};
  const Answer written = answer(engine, request);
  text.insert(text.end(), written.tokens.begin(), written.tokens.end());
  return text;
}

TEST(GivenText, HandsOverEveryRowOnceInOrder) {
  const Engine engine = toy_engine();
  const std::vector<TokenId> text = own_text(engine);
  for (const size_t length : {2u, 3u, 128u, 129u, 130u, 301u}) {
    Rows rows;
    ASSERT_TRUE(record_given(engine, std::span(text).first(length), rows));
    EXPECT_TRUE(std::ranges::equal(rows.seen, std::span(text).first(length - 1)));
    EXPECT_TRUE(std::ranges::equal(rows.following, std::span(text).subspan(1, length - 1)));
  }
}

TEST(GivenText, KnowsWhatTheTrunkWouldHaveWritten) {
  const Engine engine = toy_engine();
  std::vector<TokenId> text = own_text(engine);
  Rows own;
  ASSERT_TRUE(record_given(engine, text, own));
  EXPECT_EQ(std::ranges::count(own.own_top1, true), 300);
  text[200] = (text[200] + 1) % 300;  // the toy looks at three tokens
  Rows foreign;
  ASSERT_TRUE(record_given(engine, text, foreign));
  for (size_t i = 0; i < 300; ++i) {
    if (i >= 199 && i <= 202) continue;
    EXPECT_TRUE(foreign.own_top1[i]) << i;
  }
  EXPECT_FALSE(foreign.own_top1[199]);
}

// Some blocks end in drafts that fall; each row that stands is shown once, and is the same.
TEST(GivenText, DraftsThatFallLeaveNothingBehind) {
  const auto read = [](const Engine& engine, const ReadingOptions& options) {
    std::vector<float> first;
    const std::vector<TokenId> text = own_text(toy_engine());
    int next = options.first;
    EXPECT_TRUE(read_given(engine, text, options, [&](int position, std::span<const float> logits) {
      EXPECT_EQ(position, next++);
      first.push_back(logits[0]);
    }));
    EXPECT_EQ(next, 300);
    return first;
  };
  const Engine engine = toy_engine();
  const auto plain = read(engine, {.first = 20});
  const auto* toy = static_cast<const ToyModel*>(&engine.model());
  for (const int width : {1, 2, 5, 17}) {
    int64_t rows = toy->rows();
    EXPECT_EQ(read(engine, {.first = 20, .width = width, .drafts_fall = true}), plain) << width;
    rows = toy->rows() - rows;
    EXPECT_EQ(rows > 300, width > 1) << rows;
    EXPECT_LT(rows, 360);
  }
  // A trunk that keeps what fell is found by them, and not without.
  const Engine faulty = toy_engine({.skips_rollback = true});
  EXPECT_EQ(read(faulty, {.first = 20, .width = 5}), plain);
  EXPECT_NE(read(faulty, {.first = 20, .width = 5, .drafts_fall = true}), plain);
}

TEST(GivenText, BeyondTheContextIsRefused) {
  const Engine engine = toy_engine({}, {}, 10);
  Rows rows;
  const auto refused = record_given(engine, std::vector<TokenId>(11, 1), rows);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
}

// A generation hands over its rows, whatever was drafted, and nothing that an earlier one read is
// taken over.
TEST(RowSink, GetsEveryCommittedRowOnce) {
  const Engine engine = toy_engine();
  const std::vector<TokenId> text = own_text(engine);
  for (const int n_prompt : {1, 2, 64, 65, 150}) {
    for (const int depth : {0, 1, 4}) {
      Rows rows;
      Request request{.prompt = {text.begin(), text.begin() + n_prompt},
                      .max_tokens = 100,
                      .depth = depth,
                      .drafter = DrafterKind::Scripted,
                      .script = {text.begin() + n_prompt, text.end()},
                      .allow_inexact = true,
                      .row_sink = &rows};
      for (size_t i = 2; i < request.script.size(); i += 3) request.script[i] += 1;
      const Answer written = answer(engine, request);
      ASSERT_EQ(written.error, "");
      EXPECT_EQ(written.stats.reused_tokens, 0);
      EXPECT_EQ(rows.rounds > 0, depth > 0);
      EXPECT_TRUE(std::ranges::equal(rows.seen, std::span(text).first(rows.seen.size())));
      EXPECT_EQ(rows.seen.size(), static_cast<size_t>(n_prompt) + 99);
      EXPECT_EQ(std::ranges::count(rows.own_top1, true), 100);
    }
  }
}

TEST(RowSink, LearnsWhichDrawnTokensWereTheFirstChoice) {
  const Engine engine = toy_engine({.speech = 6, .levels = 4});
  Rows rows;
  Request request{.prompt = {7}, .max_tokens = 200, .depth = 0, .row_sink = &rows};
  request.sampling.temperature = 0.02;
  request.logprobs = 1;
  const Answer written = answer(engine, request);
  ASSERT_EQ(rows.own_top1.size(), 200u);
  for (size_t i = 0; i < 200; ++i)
    EXPECT_EQ(rows.own_top1[i], written.logprobs[i].top[0].first == written.tokens[i]) << i;
  const auto own = std::ranges::count(rows.own_top1, true);
  EXPECT_GT(own, 0);
  EXPECT_LT(own, 200);
}

TEST(Cycle, BeginsWithItsFirstInstance) {
  const std::vector<TokenId> plain = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(cycle_start(plain), 6);
  EXPECT_EQ(cycle_start(std::vector<TokenId>{9, 8, 1, 2, 1, 2, 1, 2}), 2);
  EXPECT_EQ(cycle_start(std::vector<TokenId>{9, 8, 1, 2, 1, 2, 1}), 7);  // less than three times
  EXPECT_EQ(cycle_start(std::vector<TokenId>{5, 5, 5}), 0);
  EXPECT_EQ(cycle_start(std::vector<TokenId>{5, 5, 5, 4}), 4);  // it does not go on to the end
  std::vector<TokenId> seventeen(170);
  for (int i = 0; i < 170; ++i) seventeen[static_cast<size_t>(i)] = i % 17;
  EXPECT_EQ(cycle_start(seventeen), 170);
}

}  // namespace
}  // namespace paceline::measure
