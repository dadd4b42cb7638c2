#include "apps/flags.h"

#include <gtest/gtest.h>

#include "apps/values.h"

namespace paceline::apps {
namespace {

struct Given {
  std::string model;
  int threads = 0;
  int type = -1;
  bool raw = false;
  std::optional<std::string> prompt;
  std::vector<std::string> stop;
};

// The error's sentence, or "" when the flags were taken.
std::string parse(std::vector<const char*> args, Given& given) {
  Flags flags("generate", "What it does.", "paceline generate model.gguf");
  flags.positional("MODEL", given.model, "a model");
  flags.integer("--threads", given.threads, 1, 64, "threads");
  flags.choice("--cache", {"f16", "f32"}, given.type, "cache");
  flags.flag("--raw", given.raw, "raw");
  flags.text("--prompt", "TEXT", given.prompt, "text");
  flags.texts("--stop", "TEXT", given.stop, "stop");
  flags.absent("--learn", "this version has no store", "no");
  const auto outcome = flags.parse(args);
  return outcome ? "" : outcome.error().message;
}

TEST(Flags, TakeValuesInEverySpelling) {
  Given given;
  EXPECT_EQ(
      parse({"--threads", "3", "m.gguf", "--cache=f32", "--raw", "--stop", "a", "--stop", "b, [c]"},
            given),
      "");
  EXPECT_EQ(given.model, "m.gguf");
  EXPECT_EQ(given.threads, 3);
  EXPECT_EQ(given.type, 1);
  EXPECT_TRUE(given.raw);
  EXPECT_EQ(given.stop, (std::vector<std::string>{"a", "b, [c]"}));
}

TEST(Flags, TakeAnyTextAsText) {
  for (const char* text : {"", "[1,2]", "--raw", "-1", "- a list", "{}", "\"quoted\"", "%%"}) {
    Given given;
    EXPECT_EQ(parse({"m", "--prompt", text}, given), "") << text;
    EXPECT_EQ(given.prompt, text);
    EXPECT_FALSE(given.raw);
  }
  Given given;
  EXPECT_EQ(parse({"m", "--prompt=", "--raw"}, given), "");
  EXPECT_EQ(given.prompt, "");
  EXPECT_TRUE(given.raw);
}

TEST(Flags, SayInOneSentenceWhatWasWanted) {
  Given given;
  EXPECT_EQ(parse({"m", "--threads", "65"}, given),
            "--threads wants a whole number from 1 to 64, not '65'");
  for (const char* bad : {"0", "-1", "1.5", "", " 1", "1 ", "nan", "1e3", "99999999999999999999"}) {
    EXPECT_NE(parse({"m", "--threads", bad}, given), "") << bad;
  }
  EXPECT_EQ(parse({"m", "--cache", "q8"}, given), "--cache wants one of f16, f32, not 'q8'");
  EXPECT_EQ(parse({"m", "--learn"}, given), "--learn cannot be: this version has no store");
}

TEST(Flags, RefuseWhatTheyDoNotKnow) {
  Given given;
  const std::string see = "; see paceline generate --help";
  EXPECT_EQ(parse({"m", "--thread", "2"}, given), "there is no flag '--thread'" + see);
  EXPECT_EQ(parse({"m", "-t"}, given), "there is no flag '-t'" + see);
  EXPECT_EQ(parse({"m", "n"}, given), "cannot use the argument 'n'" + see);
  EXPECT_EQ(parse({}, given), "MODEL is missing" + see);
  EXPECT_EQ(parse({"m", "--threads"}, given), "--threads wants a value" + see);
  EXPECT_EQ(parse({"m", "--threads", "1", "--threads", "2"}, given),
            "--threads is given more than once");
}

TEST(Values, AreReadWhole) {
  EXPECT_EQ(*parse_integer("12", 0, 20), 12);
  EXPECT_FALSE(parse_integer("12x", 0, 20).has_value());
  EXPECT_DOUBLE_EQ(*parse_number("-2.5e1", -30, 0), -25);
  for (const char* bad : {"inf", "-inf", "nan", "1e999", "", "0x1", "1,5"}) {
    EXPECT_FALSE(parse_number(bad, -1e300, 1e300).has_value()) << bad;
  }
  EXPECT_EQ(*parse_ids("1, 2,3"), (std::vector<TokenId>{1, 2, 3}));
  for (const char* bad : {"", "1,,2", "1,", "a", "-1", "1 2", "4294967296", "1.0"}) {
    EXPECT_FALSE(parse_ids(bad).has_value()) << bad;
  }
  EXPECT_EQ(join_ids({4, 5}), "4,5");
}

}  // namespace
}  // namespace paceline::apps
