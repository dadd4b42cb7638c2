#include "apps/prompt_flags.h"

#include <gtest/gtest.h>

namespace paceline::apps {
namespace {

std::string error_of(std::string_view text) {
  const auto sources = parse_prompts(text, "p.jsonl", true);
  return sources ? "" : sources.error().message;
}

TEST(ParsePrompts, TakesOneALine) {
  const auto sources = parse_prompts(
      "\xef\xbb\xbf"
      "first\r\n\n  \n{\"not\": json}",
      "p.txt", false);
  ASSERT_TRUE(sources.has_value());
  ASSERT_EQ(sources->size(), 2u);
  EXPECT_EQ((*sources)[0].text, "first");
  EXPECT_EQ((*sources)[0].id, "1");
  EXPECT_EQ((*sources)[1].text, "{\"not\": json}");
  EXPECT_EQ((*sources)[1].id, "4");  // blank lines count
}

TEST(ParsePrompts, TakesJsonLines) {
  const auto sources = parse_prompts(
      "{\"prompt\": \"a\\nb\", \"id\": 7, \"category\": \"code\", \"other\": [1]}\n"
      "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"},"
      " {\"role\": \"user\", \"content\": \"u\"}], \"id\": \"x\"}\n",
      "p.jsonl", true);
  ASSERT_TRUE(sources.has_value());
  ASSERT_EQ(sources->size(), 2u);
  EXPECT_EQ((*sources)[0].id, "7");
  EXPECT_EQ((*sources)[0].category, "code");
  EXPECT_EQ((*sources)[0].text, "a\nb");
  ASSERT_EQ((*sources)[1].messages.size(), 2u);
  EXPECT_EQ((*sources)[1].messages[1].content, "u");
  EXPECT_EQ((*sources)[1].id, "x");
}

TEST(ParsePrompts, NamesFileLineAndWhatWasWanted) {
  EXPECT_EQ(error_of("{\"prompt\": \"a\"}\n{\"prompt\": 3}\n"),
            "p.jsonl line 2: prompt wants a text");
  EXPECT_EQ(error_of("{\"prompt\": \"a\""),
            "p.jsonl line 1: wants a JSON object, not '{\"prompt\": \"a\"'");
  EXPECT_EQ(error_of("[1]"),
            "p.jsonl line 1: wants an object with prompt or messages, and has "
            "neither");
  EXPECT_EQ(error_of("{\"prompt\": \"a\", \"messages\": []}"),
            "p.jsonl line 1: wants an object with prompt or messages, not both");
  EXPECT_EQ(error_of("{\"prompt\": \"\"}"), "p.jsonl line 1: the prompt is empty");
  EXPECT_EQ(error_of("\n\n"), "p.jsonl holds no prompt");
  for (const char* bad :
       {R"({"messages": []})", R"({"messages": "u"})", R"({"messages": [3]})",
        R"({"messages": [{"role": "user"}]})", R"({"messages": [{"role": 1, "content": "u"}]})",
        R"({"prompt": "a", "id": [1]})", R"({"prompt": "a", "category": 1.5})",
        "{\"prompt\": \"\xff\"}", R"({"prompt": "\ud800"})", "null"}) {
    EXPECT_NE(error_of(bad), "") << bad;
  }
}

TEST(PromptFlags, WantExactlyOneSource) {
  PromptFlags none;
  EXPECT_FALSE(none.read().has_value());
  PromptFlags both;
  both.prompt = "a";
  both.ids = {1};
  EXPECT_FALSE(both.read().has_value());
  PromptFlags empty;
  empty.prompt = "";
  EXPECT_FALSE(empty.read().has_value());
  PromptFlags system_raw;
  system_raw.prompt = "a";
  system_raw.system = "s";
  system_raw.raw = true;
  EXPECT_FALSE(system_raw.read().has_value());
}

}  // namespace
}  // namespace paceline::apps
