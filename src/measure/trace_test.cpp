#include "measure/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/toy_engine.h"

namespace paceline::measure {
namespace {

// A row whose logits over four tokens are given; nll is that of token `next`.
TracePoint row(int position, std::vector<float> logits, TokenId next = 0) {
  TracePoint point{
      .piece = 0, .position = position, .next = next, .nll = 0, .log_sum = 0, .top = {}};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  point.log_sum = std::log(sum);
  point.nll = point.log_sum - static_cast<double>(logits[next]);
  for (size_t i = 0; i < logits.size(); ++i)
    point.top.emplace_back(static_cast<TokenId>(i), logits[i]);
  std::stable_sort(point.top.begin(), point.top.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return point;
}

TEST(CompareTraces, CountsByTheReferencesGap) {
  const std::vector<TracePoint> reference = {row(0, {4, 1, 0, 0}), row(1, {1, 1.25f, 0, 0}),
                                             row(2, {0, 0, 9, 1})};
  const std::vector<TracePoint> candidate = {row(0, {4, 1, 0, 0}), row(1, {1.5f, 1.25f, 0, 0}),
                                             row(2, {0, 0, 8, 1})};
  const auto found = compare_traces(reference, candidate);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 1);
  EXPECT_EQ(found->decided, 2);
  EXPECT_EQ(found->differing_decided, 0);
  EXPECT_EQ(found->verdict(), TraceComparison::Verdict::Undecided);
  EXPECT_EQ(found->by_gap, (std::array<int64_t, 6>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(found->differing_by_gap, (std::array<int64_t, 6>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(found->rank_of_reference, (std::vector<int64_t>{2, 1, 0, 0, 0}));
  EXPECT_EQ(found->deltas, (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(found->quantile(0.5), 0);
  EXPECT_EQ(found->quantile(1), 1);
}

TEST(CompareTraces, TellsDecidedDifferencesFromNone) {
  const std::vector<TracePoint> reference = {row(0, {4, 1, 0, 0})};
  EXPECT_EQ(compare_traces(reference, reference)->verdict(), TraceComparison::Verdict::Same);
  EXPECT_EQ(compare_traces(reference, reference)->kl, 0);
  EXPECT_EQ(compare_traces(reference, {row(0, {1, 4, 0, 0})})->verdict(),
            TraceComparison::Verdict::Decided);
}

// Two words of probability 1/2 each against 1/4 and 3/4: ln 2 - (ln 3) / 2 ... by hand 0.1438 nats.
TEST(CompareTraces, DivergenceIsThatOfTheDistributions) {
  const auto log = [](double p) { return static_cast<float>(std::log(p)); };
  const auto found =
      compare_traces({row(0, {log(0.5), log(0.5)})}, {row(0, {log(0.25), log(0.75)})});
  ASSERT_TRUE(found && found->kl);
  EXPECT_NEAR(*found->kl, 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
  EXPECT_NEAR(found->kl_share, 1, 1e-6);
}

TEST(CompareTraces, RefusesOtherRows) {
  const std::vector<TracePoint> reference = {row(0, {4, 1}), row(1, {4, 1})};
  EXPECT_FALSE(compare_traces(reference, {reference[0]}));
  EXPECT_FALSE(compare_traces({}, {}));
  EXPECT_FALSE(compare_traces(reference, {row(0, {4, 1}), row(2, {4, 1})}));
  const auto other_text = compare_traces(reference, {row(0, {4, 1}), row(1, {4, 1}, 1)});
  ASSERT_FALSE(other_text);
  EXPECT_NE(other_text.error().message.find("row 2"), std::string::npos);
}

TEST(TraceText, IsTheSameInBlocksOfAnyWidth) {
  const Engine engine = toy_engine({.seed = 5});
  std::vector<TokenId> text;
  for (int i = 0; i < 100; ++i) text.push_back(i * i % 31);
  const auto trace = [&](int width) {
    std::vector<TracePoint> points;
    EXPECT_TRUE(trace_text(engine, text, {.width = width, .prefill = 7, .piece = 40, .top = 4},
                           [&](const TracePoint& point) -> Result<void> {
                             points.push_back(point);
                             return {};
                           }));
    return points;
  };
  const auto plain = trace(1);
  // Pieces of 40, 40 and 20 tokens: rows 6 to the last but one of each.
  EXPECT_EQ(plain.size(), 33u + 33u + 13u);
  for (const int width : {2, 5, 17}) {
    const auto found = compare_traces(plain, trace(width));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->verdict(), TraceComparison::Verdict::Same);
    EXPECT_EQ(found->quantile(1), 0) << "width " << width;
  }
}

}  // namespace
}  // namespace paceline::measure
