#include "spec/lookup.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

struct Match {
  int length = 0;
  int end = 0;
};

// The definition: the longest suffix that also ends at an earlier place, and the last such place.
Match brute_force(std::span<const TokenId> text) {
  const int n = static_cast<int>(text.size());
  Match best;
  for (int end = n - 2; end >= 0; --end) {
    int length = 0;
    while (length <= end && text[end - length] == text[n - 1 - length]) ++length;
    if (length > best.length) best = {length, end};
  }
  return best;
}

Tokens random_text(std::mt19937& random, int length, int alphabet, double copying) {
  Tokens text;
  while (static_cast<int>(text.size()) < length) {
    if (!text.empty() && std::uniform_real_distribution<>(0, 1)(random) < copying) {
      size_t from = random() % text.size();
      const size_t n = 1 + random() % 12;
      for (size_t i = 0; i < n && static_cast<int>(text.size()) < length; ++i) {
        text.push_back(text[from++]);
      }
    } else {
      text.push_back(static_cast<TokenId>(random() % alphabet));
    }
  }
  return text;
}

TEST(SuffixAutomaton, FindsTheLongestRepeatedSuffixAtItsMostRecentPlace) {
  std::mt19937 random(20);
  for (int run = 0; run < 400; ++run) {
    const int alphabet = 1 + run % 5;
    const Tokens text = random_text(random, 1 + run % 90, alphabet, (run % 3) * 0.3);
    SuffixAutomaton automaton(/*max_climb=*/1000);
    automaton.begin(static_cast<int>(text.size()));
    for (size_t n = 1; n <= text.size(); ++n) {
      automaton.append(text[n - 1]);
      const Match want = brute_force(std::span(text).first(n));
      ASSERT_EQ(automaton.match_length(), want.length) << "run " << run << ", after " << n;
      if (want.length > 0) {
        ASSERT_EQ(automaton.match_end(), want.end) << "run " << run << ", after " << n;
      }
    }
  }
}

TEST(SuffixAutomaton, WithABoundedClimbTheMatchIsStillARealOneAndTheLongest) {
  std::mt19937 random(21);
  for (int run = 0; run < 200; ++run) {
    const Tokens text = random_text(random, 80, 1 + run % 3, 0.5);
    SuffixAutomaton automaton(/*max_climb=*/2);
    automaton.begin(80);
    for (size_t n = 1; n <= text.size(); ++n) {
      automaton.append(text[n - 1]);
      const int length = automaton.match_length();
      ASSERT_EQ(length, brute_force(std::span(text).first(n)).length);
      for (int i = 0; i < length; ++i) {
        ASSERT_LT(automaton.match_end(), static_cast<int>(n) - 1);
        ASSERT_EQ(text[automaton.match_end() - i], text[n - 1 - i]);
      }
    }
  }
}

TEST(SuffixAutomaton, HoldsALongTextOfOneTokenAndOneOfAllDifferent) {
  SuffixAutomaton automaton;
  automaton.begin(100'000);
  for (int i = 0; i < 100'000; ++i) automaton.append(70'000);
  EXPECT_EQ(automaton.match_length(), 99'999);
  EXPECT_EQ(automaton.match_end(), 99'998);
  automaton.begin(100'000);
  for (int i = 0; i < 100'000; ++i) automaton.append(i);
  EXPECT_EQ(automaton.match_length(), 0);
}

Tokens drafted(LookupDrafter& drafter, int n, std::vector<int>* evidence = nullptr) {
  std::vector<Draft> drafts(n);
  drafts.resize(drafter.draft(drafts));
  Tokens tokens;
  for (const Draft& draft : drafts) {
    tokens.push_back(draft.token);
    EXPECT_EQ(draft.source, DraftSource::Lookup);
    if (evidence != nullptr) evidence->push_back(draft.evidence);
  }
  return tokens;
}

TEST(Lookup, DraftsWhatFollowedTheLongestMatch) {
  LookupDrafter drafter;
  // "2 3" occurred twice, followed by 9 and later by 8; "1 2 3" occurred once, followed by 9.
  drafter.begin(Tokens{1, 2, 3, 9, 5, 2, 3, 8, 6, 1, 2}, 100);
  drafter.observe(Tokens{3}, {});
  std::vector<int> evidence;
  EXPECT_EQ(drafted(drafter, 4, &evidence), (Tokens{9, 5, 2, 3}));
  EXPECT_EQ(evidence, (std::vector<int>{3, 4, 5, 6}));
}

TEST(Lookup, OfEqualMatchesTheMostRecentSpeaks) {
  LookupDrafter drafter;
  drafter.begin(Tokens{2, 3, 9, 2, 3, 8, 7, 2, 3}, 100);
  EXPECT_EQ(drafted(drafter, 2), (Tokens{8, 7}));
}

TEST(Lookup, GoesOnThroughTheEndOfTheTextInACycle) {
  LookupDrafter drafter;
  drafter.begin(Tokens{5, 1, 2, 3, 1, 2}, 100);
  EXPECT_EQ(drafted(drafter, 8), (Tokens{3, 1, 2, 3, 1, 2, 3, 1}));
  drafter.begin(Tokens{4, 4}, 100);
  std::vector<int> evidence;
  EXPECT_EQ(drafted(drafter, 16, &evidence), Tokens(16, 4));
  EXPECT_EQ(evidence.back(), kEvidenceLevels - 1);
}

TEST(Lookup, IsSilentWithoutAMatchAndBelowTheLeastLength) {
  LookupDrafter drafter;
  drafter.begin(Tokens{1, 2, 3, 4}, 100);
  EXPECT_EQ(drafted(drafter, 4), Tokens{});
  drafter.observe(Tokens{2}, {});
  EXPECT_EQ(drafted(drafter, 2), (Tokens{3, 4}));

  LookupDrafter careful({.min_match = 2});
  careful.begin(Tokens{1, 2, 3, 4, 2}, 100);
  EXPECT_EQ(drafted(careful, 4), Tokens{});
  careful.observe(Tokens{3}, {});
  EXPECT_EQ(drafted(careful, 1), Tokens{4});
}

TEST(Lookup, ANewSequenceForgetsTheOldOne) {
  LookupDrafter drafter;
  drafter.begin(Tokens{1, 2, 3, 1}, 10);
  EXPECT_EQ(drafted(drafter, 1), Tokens{2});
  drafter.begin(Tokens{3, 1}, 10);
  EXPECT_EQ(drafted(drafter, 1), Tokens{});
}

}  // namespace
}  // namespace paceline
