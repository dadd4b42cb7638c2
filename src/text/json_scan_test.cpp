#include "text/json_scan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace paceline {
namespace {

using Json = nlohmann::json;

TEST(JsonScan, ReadsTextsAsTheParserDoes) {
  for (const char* source :
       {R"("")", R"("abc")", R"("\"\\\/\b\f\n\r\t")", R"("\u0041\u00e9\u20ac")",
        R"("\ud83e\udd99 x")", "\"\u2581\U0001F999\"", R"("\u0000")", "  \"x\" \n"}) {
    JsonScan scan(source);
    EXPECT_TRUE(scan.is_text());
    EXPECT_EQ(scan.text(), Json::parse(source).get<std::string>()) << source;
    EXPECT_TRUE(scan.at_end() && !scan.failed()) << source;
  }
  JsonScan lone(R"("\ud83e \udd99\ud83ex")");  // no pair: three marks
  EXPECT_EQ(lone.text(), "\uFFFD \uFFFD\uFFFDx");
}

TEST(JsonScan, WalksObjectsAndLists) {
  JsonScan scan(R"( {"a" : -12, "b":[ [1,2] , {"c":"]"} ],"d\n":1.5, "e":[]} )");
  ASSERT_TRUE(scan.enter('{'));
  ASSERT_TRUE(scan.next('}'));
  EXPECT_EQ(scan.key(), "a");
  EXPECT_EQ(scan.integer(), -12);
  ASSERT_TRUE(scan.next('}'));
  EXPECT_EQ(scan.key(), "b");
  EXPECT_EQ(scan.value(), R"([ [1,2] , {"c":"]"} ])");
  ASSERT_TRUE(scan.next('}'));
  EXPECT_EQ(scan.key(), "d\n");
  EXPECT_EQ(scan.integer(), std::nullopt);
  ASSERT_TRUE(scan.next('}'));
  EXPECT_EQ(scan.key(), "e");
  ASSERT_TRUE(scan.is_list() && scan.enter('['));
  EXPECT_FALSE(scan.next(']'));
  EXPECT_FALSE(scan.next('}'));
  EXPECT_TRUE(scan.at_end() && !scan.failed());
}

TEST(JsonScan, FailsForGoodAtTextThatIsNoJson) {
  for (const char* source : {"", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1 2}",
                             "{\"a\":[}", "{\"a\":[1,2}", "{\"a\\", "{\"a\\x\":1}", "{\"\\u12\":1}",
                             "{\"a\nb\":1}", "{1:2}", "[1]", "{,}"}) {
    JsonScan scan(source);
    if (scan.enter('{')) {
      while (scan.next('}')) {
        (void)scan.key();
        (void)scan.value();
      }
    }
    EXPECT_TRUE(scan.failed()) << source;
    EXPECT_FALSE(scan.next('}')) << source;
  }
  JsonScan deep(std::string_view("[").substr(0, 1));
  EXPECT_EQ(deep.value(), "");
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(JsonScan(nested).value().size(), nested.size());  // takes no stack
}

}  // namespace
}  // namespace paceline
