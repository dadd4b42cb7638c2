#include "io/json_parse.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

std::string lists(int n) { return std::string(n, '[') + std::string(n, ']'); }

TEST(JsonParse, TakesTwoHundredAndFiftySixLevelsAndNoMore) {
  EXPECT_TRUE(parse_json<Json>(lists(256)).is_array());
  EXPECT_TRUE(parse_json<Json>(lists(257)).is_discarded());
  EXPECT_TRUE(parse_json<Json>("{\"a\": " + lists(200'000) + "}").is_discarded());
}

TEST(JsonParse, BracketsInStringsAndBesideEachOtherAreNoLevels) {
  const Json text = parse_json<Json>("\"\\\"" + std::string(300, '[') + "\"");
  EXPECT_EQ(text.get<std::string>().size(), 301u);
  std::string pairs = "[0";
  for (int i = 0; i < 300; ++i) pairs += ",[{}]";
  EXPECT_EQ(parse_json<Json>(pairs + "]").size(), 301u);
}

TEST(JsonParse, IsDiscardedWhereTheTextIsNone) {
  for (const char* text : {"", "[", "]", "{\"a\"}", "nul", "\"\xff\""})
    EXPECT_TRUE(parse_json<Json>(text).is_discarded()) << text;
}

}  // namespace
}  // namespace paceline
