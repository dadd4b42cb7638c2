#include "engine/stop.h"

#include <gtest/gtest.h>

#include <random>

namespace paceline {
namespace {

using Strings = std::vector<std::string>;

// All text that a scanner lets out when `text` comes in pieces of n bytes, and whether it stopped.
std::pair<std::string, bool> let_out(const Strings& stops, std::string_view text, size_t n) {
  StopScanner scanner(stops);
  std::string so_far;
  size_t certain = 0;
  for (size_t at = 0; at < text.size() && !scanner.stopped(); at += n) {
    so_far += text.substr(at, n);
    const size_t now = scanner.scan(so_far);
    EXPECT_GE(now, certain) << "what was let out cannot be taken back";
    EXPECT_LE(now, so_far.size());
    certain = now;
  }
  return {so_far.substr(0, scanner.stopped() ? certain : so_far.size()), scanner.stopped()};
}

TEST(StopScanner, CutsBeforeTheStopStringHoweverTheTextIsPieced) {
  for (size_t n = 1; n <= 12; ++n) {
    EXPECT_EQ(let_out({"END"}, "the END of it", n), std::pair(std::string("the "), true)) << n;
    EXPECT_EQ(let_out({"END"}, "the EN of it", n), std::pair(std::string("the EN of it"), false));
    EXPECT_EQ(let_out({"aab"}, "aaaab", n), std::pair(std::string("aa"), true));
  }
}

TEST(StopScanner, HoldsBackWhatMayBecomeAStopStringAndNoMore) {
  StopScanner scanner(Strings{"abac", "xy"});
  EXPECT_EQ(scanner.scan("q"), 1u);
  EXPECT_EQ(scanner.scan("qa"), 1u);
  EXPECT_EQ(scanner.scan("qab"), 1u);
  EXPECT_EQ(scanner.scan("qaba"), 1u);
  EXPECT_EQ(scanner.scan("qabab"), 3u);  // "ab" may go on to "abac"
  EXPECT_EQ(scanner.scan("qababx"), 5u);
  EXPECT_EQ(scanner.scan("qababxz"), 7u);
  EXPECT_FALSE(scanner.stopped());
}

TEST(StopScanner, TheFirstToCompleteWinsAndOfThoseTheLongest) {
  EXPECT_EQ(let_out({"abcd", "c"}, "xabcd", 1).first, "xab");
  EXPECT_EQ(let_out({"bc", "abc", "c"}, "xabcd", 5).first, "x");
  EXPECT_EQ(let_out({"d", "bc"}, "abcd", 4).first, "a");
}

TEST(StopScanner, AgreesWithASearchByHand) {
  std::mt19937 random(5);
  const auto word = [&](size_t most) {
    std::string text(1 + random() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int run = 0; run < 2000; ++run) {
    const std::string text = word(30);
    Strings stops;
    for (size_t i = 0; i <= run % 3u; ++i) stops.push_back(word(6));
    size_t cut = std::string::npos;  // where the text is cut
    for (size_t end = 1; end <= text.size() && cut == std::string::npos; ++end) {
      for (const std::string& stop : stops) {
        if (std::string_view(text).substr(0, end).ends_with(stop)) {
          cut = std::min(cut, end - stop.size());
        }
      }
    }
    const auto got = let_out(stops, text, 1 + run % 7);
    EXPECT_EQ(got.second, cut != std::string::npos);
    EXPECT_EQ(got.first, text.substr(0, cut));
  }
}

TEST(StopScanner, WithoutStopStringsAllIsCertain) {
  StopScanner scanner(Strings{});
  EXPECT_EQ(scanner.scan("abc"), 3u);
  EXPECT_FALSE(scanner.stopped());
}

}  // namespace
}  // namespace paceline
