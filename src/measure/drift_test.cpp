#include "measure/drift.h"

#include <gtest/gtest.h>

namespace paceline::measure {
namespace {

using Streams = std::vector<IdStream>;

TEST(Drift, TheWorstPromptDecides) {
  const Streams plain = {{"p", {1, 2, 3}}, {"q", {4, 5}}, {"r", {6, 7, 8}}};
  EXPECT_EQ(compare_streams(plain, plain)->outcome, DriftOutcome::Same);

  Streams other = plain;
  other[1].ids.push_back(9);  // an id more at the end is no agreement
  auto drift = *compare_streams(plain, other);
  EXPECT_EQ(drift.outcome, DriftOutcome::SamePrefix);
  EXPECT_EQ(drift.flip_rate(), 0);
  EXPECT_FALSE(drift.first_flip.has_value());

  other[1].ids.resize(1);  // nor is one that ends early
  EXPECT_EQ(compare_streams(plain, other)->outcome, DriftOutcome::SamePrefix);

  other[2].ids = {6, 0, 8};
  other[0].ids = {1, 2, 0};
  drift = *compare_streams(plain, other);
  EXPECT_EQ(drift.outcome, DriftOutcome::Different);
  ASSERT_TRUE(drift.first_flip.has_value());
  EXPECT_EQ(drift.first_flip->prompt, 2);
  EXPECT_EQ(drift.first_flip->position, 1);
  EXPECT_EQ(drift.first_flip->a, 7);
  EXPECT_EQ(drift.first_flip->b, 0);
  EXPECT_EQ(drift.compared, 7);
  EXPECT_EQ(drift.differing, 2);
  EXPECT_EQ(drift.prompts[1].outcome, DriftOutcome::SamePrefix);
}

TEST(Drift, AnswersThatRunInCyclesAreNamed) {
  const Streams loops = {{"p", std::vector<TokenId>(64, 7)}};
  const auto drift = *compare_streams(loops, loops);
  EXPECT_EQ(drift.outcome, DriftOutcome::Same);
  EXPECT_TRUE(drift.prompts[0].cyclic_a);
  EXPECT_TRUE(drift.prompts[0].cyclic_b);
}

TEST(Drift, WhatCannotBeComparedIsRefused) {
  const Streams one = {{"p", {1}}};
  EXPECT_FALSE(compare_streams(one, {{"p", {}}}));
  EXPECT_FALSE(compare_streams({{"p", {}}}, one));
  EXPECT_FALSE(compare_streams(one, {{"q", {1}}}));
  EXPECT_FALSE(compare_streams(one, {{"p", {1}}, {"q", {1}}}));
  EXPECT_TRUE(compare_streams({{"p", {1}}, {"q", {}}}, {{"p", {1}}, {"q", {}}}));
}

}  // namespace
}  // namespace paceline::measure
