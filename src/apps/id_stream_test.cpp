#include "apps/id_stream.h"

#include <gtest/gtest.h>

namespace paceline::apps {
namespace {

TEST(IdStream, IsToldByItsContent) {
  const auto bare = parse_id_file(
      "{\"prompt\": \"p\", \"token_ids\": [1, 2]}\n\n"
      "{\"prompt\": [3, 4], \"token_ids\": []}",
      "a");
  ASSERT_TRUE(bare);
  ASSERT_EQ(bare->streams.size(), 2u);
  EXPECT_EQ(bare->streams[0].prompt, "p");
  EXPECT_EQ(bare->streams[0].ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(bare->streams[1].prompt, "3,4");
  EXPECT_TRUE(bare->configuration.is_null());

  const auto own = parse_id_file("{\"configuration\": {\"depth\": 4}}\n" + id_line({3}, {5}), "a");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->configuration["depth"], 4);
  EXPECT_EQ(own->streams[0].prompt, "3");
  EXPECT_EQ(own->streams[0].ids, (std::vector<TokenId>{5}));

  const auto report = parse_id_file(
      "{\n \"seed\": 7, \"results\": [{\"prompt_ids\": [3], \"arms\": [{\"depth\": 0, \"drafter\": "
      "\"none\", \"token_ids\": [5]}]}]\n}\n",
      "a");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->streams[0].prompt, "3");
  EXPECT_EQ(report->configuration["seed"], 7);
  EXPECT_EQ(report->configuration["drafter"], "none");
}

TEST(IdStream, AnythingElseIsRefused) {
  for (const char* text :
       {"", "\n\n", "loading model ...\n{\"prompt\": \"p\", \"token_ids\": [1]}", "[1, 2]", "{",
        R"({"token_ids": [1]})", R"({"prompt": "p"})", R"({"prompt": "p", "token_ids": "1 2"})",
        R"({"prompt": "p", "token_ids": [-1]})", R"({"prompt": "p", "token_ids": [1.5]})",
        R"({"prompt": "p", "token_ids": [4294967296]})", R"({"results": []})", R"({"results": 1})",
        R"({"results": [1]})", R"({"results": [{"arms": []}]})",
        R"({"results": [{"prompt_ids": [1], "arms": [1]}]})", R"({"configuration": {}})"})
    EXPECT_FALSE(parse_id_file(text, "a")) << text;
}

}  // namespace
}  // namespace paceline::apps
