#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include "tests/toy_model.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

// A state that has read these tokens.
std::unique_ptr<SequenceState> state_of(const Tokens& tokens) {
  const ToyModel model;
  auto state = *model.make_state(static_cast<int>(tokens.size()), CacheType::F32);
  auto workspace = *model.make_workspace(static_cast<int>(tokens.size()), 1);
  Block block(static_cast<int>(tokens.size()));
  block.reset(0);
  for (const TokenId token : tokens) block.add(token);
  model.forward(block, *state, LogitRows::None, *workspace);
  state->commit(block.rows());
  return state;
}

void keep(PrefixCache& cache, const Tokens& tokens) { cache.keep(tokens, *state_of(tokens)); }

TEST(PrefixCache, FindsTheLongestBeginning) {
  PrefixCache cache(1 << 20);
  EXPECT_EQ(cache.find(Tokens{1, 2}).state, nullptr);
  keep(cache, {1, 2, 3, 4});
  keep(cache, {1, 2, 5});
  EXPECT_EQ(cache.find(Tokens{1, 2, 5, 6}).length, 3);
  EXPECT_EQ(cache.find(Tokens{1, 2, 3}).length, 3);
  EXPECT_EQ(cache.find(Tokens{1}).length, 1);
  EXPECT_EQ(cache.find(Tokens{2, 1}).state, nullptr);
  const auto match = cache.find(Tokens{1, 2, 3, 9});
  EXPECT_EQ(match.length, 3);
  EXPECT_EQ(static_cast<const ToyState*>(match.state)->tokens(), (Tokens{1, 2, 3, 4}));
}

TEST(PrefixCache, ATextThatGoesOnTakesThePlaceOfItsBeginning) {
  PrefixCache cache(1 << 20);
  keep(cache, {1, 2});
  keep(cache, {1, 2, 3});
  EXPECT_EQ(cache.size(), 1u);
  keep(cache, {1, 2});  // there already
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.find(Tokens{1, 2, 3}).length, 3);
}

TEST(PrefixCache, TheLeastRecentlyUsedGoes) {
  const int64_t one = state_of({1, 2})->bytes();
  PrefixCache cache(2 * one);
  keep(cache, {1, 2});
  keep(cache, {3, 4});
  cache.find(Tokens{1});
  keep(cache, {5, 6});
  EXPECT_EQ(cache.bytes(), 2 * one);
  EXPECT_EQ(cache.find(Tokens{3, 4}).state, nullptr);
  EXPECT_NE(cache.find(Tokens{1, 2}).state, nullptr);
  keep(cache, {7, 8, 9, 10, 11});  // more than the budget alone: not kept, nothing goes
  EXPECT_EQ(cache.size(), 2u);
  PrefixCache none(0);
  keep(none, {1, 2});
  EXPECT_EQ(none.size(), 0u);
}

}  // namespace
}  // namespace paceline
