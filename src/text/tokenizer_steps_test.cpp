// Every step that tokenizer.json may hold, against the tokenizers library, and vocabularies with
// scores against those with merges.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace paceline {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) + "/tests/golden/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Json chars_json() { return Json::parse(read_file("tokenizer_tiny_chars.json")); }

std::unique_ptr<Tokenizer> make(const Json& json) {
  auto made = make_bpe(json.dump(), "");
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : nullptr;
}

std::map<std::string, std::unique_ptr<Tokenizer>> make_variants(const Json& variants) {
  std::map<std::string, std::unique_ptr<Tokenizer>> made;
  for (const auto& [name, variant] : variants.items()) {
    Json json = Json::parse(read_file(variant["base"].get<std::string>()));
    for (const auto& [member, value] : variant.items())
      if (member != "base") json[member] = value;
    made[name] = make(json);
  }
  return made;
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool read_specials = true) {
  Ids ids;
  tokenizer.encode(text, read_specials, ids);
  return ids;
}

TEST(TokenizerSteps, GiveIdsAndTextOfTheReference) {
  std::ifstream lines(std::string(PACELINE_SOURCE_DIR) + "/tests/golden/tokenizer_steps.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const auto tokenizers = make_variants(Json::parse(line)["variants"]);
  ASSERT_EQ(tokenizers.size(), 8u);
  int n_lines = 0;
  for (; std::getline(lines, line); ++n_lines) {
    const Json golden = Json::parse(line);
    const auto text = golden["text"].get<std::string>();
    for (const auto& [name, tokenizer] : tokenizers) {
      ASSERT_TRUE(tokenizer) << name;
      const Ids wanted = golden[name].get<Ids>();
      EXPECT_EQ(encode(*tokenizer, text), wanted) << name << ": " << text;
      const Ids plain = golden.value(name + "_plain", wanted);
      EXPECT_EQ(encode(*tokenizer, text, false), plain) << name << ", plain: " << text;
      EXPECT_EQ(decode(*tokenizer, wanted, /*keep_specials=*/true),
                golden.value(name + "_text", text))
          << name;
    }
  }
  EXPECT_GT(n_lines, 70);
}

TEST(TokenizerSteps, DecodeTheSameByStreamOfTokens) {
  const auto tokenizer = make(chars_json());
  ASSERT_TRUE(tokenizer);
  std::string streamed;
  StreamDecoder decoder(*tokenizer);
  const Ids ids = encode(*tokenizer, "the \U0001F999 sat");
  EXPECT_GT(ids.size(), 6u);  // the llama is four bytes
  for (const TokenId id : ids) {
    std::string delta;
    decoder.add(id, delta);
    EXPECT_TRUE(is_valid_utf8(delta));
    streamed += delta;
  }
  decoder.finish(streamed);
  EXPECT_EQ(streamed, "the \U0001F999 sat");
}

TEST(TokenizerSteps, TakeLongTextsInReasonableTime) {
  const auto tokenizer = make(chars_json());
  ASSERT_TRUE(tokenizer);
  for (const char* part : {"e", " ", "\u2581", "ab ", "\U0001F999"}) {
    std::string text;
    while (text.size() < 1'000'000) text += part;
    const std::string back = decode(*tokenizer, encode(*tokenizer, text));
    EXPECT_EQ(back.size(), part == std::string("\u2581") ? text.size() / 3 : text.size());
  }
}

TEST(AddedTokens, OfOneTextTheFirstCounts) {
  const AddedTokens tokens(
      {{.text = "<a>", .id = 1}, {.text = "<a>", .id = 2}, {.text = "<", .id = 3}});
  EXPECT_EQ(tokens.id_of("<a>"), 1);
  EXPECT_EQ(tokens.find("x<a>b", 0, 0, true)->id, 1);
  EXPECT_EQ(tokens.find("x<a", 0, 0, true)->id, 3);
  EXPECT_FALSE(tokens.find("xa>", 0, 0, true));
}

// Two special tokens may be one text when one of them is normalized.
TEST(AddedTokens, MayLookTheSameWhenNormalized) {
  Json json = chars_json();
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "y"}}}, {"content", "x"}};
  for (const auto& [content, id, normalized] :
       {std::tuple("<x>", 900, false), std::tuple("<y>", 901, true)})
    json["added_tokens"].push_back(
        {{"id", id}, {"content", content}, {"normalized", normalized}, {"special", true}});
  const auto t = make(json);
  ASSERT_TRUE(t);
  EXPECT_EQ(encode(*t, "<x><y>"), (Ids{900, 901}));
  EXPECT_EQ(t->specials().id_of("<x>"), 900);
}

std::string nfc(std::string_view text) {
  std::string out;
  append_nfc(text, out);
  return out;
}

TEST(Normalizer, ComposesAsTheReferenceDoes) {
  EXPECT_EQ(nfc("abc"), "abc");
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("xe\u0301\u0323y"), "x\u1EB9\u0301y");  // marks in the order of their classes
  EXPECT_EQ(nfc("\u212B"), "\u00C5");                   // the sign Angstrom
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");       // jamo to a syllable
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");             // excluded from composition
  EXPECT_EQ(nfc("\u0301e"), "\u0301e");                 // nothing before it
  EXPECT_EQ(nfc("a\u1AC1\u0315\u0334"),
            "a\u1AC1\u0334\u0315");  // U+1AC1 is younger than the tables
  std::string room;
  const Normalizer steps({{NormalizeStep::Kind::Replace, "ab", "b"},
                          {NormalizeStep::Kind::Nfc, "", ""},
                          {NormalizeStep::Kind::Prepend, "", "> "}});
  EXPECT_EQ(steps.apply("aabab e\u0301", room), "> abb \u00E9");  // replaced once, left to right
  EXPECT_EQ(steps.apply("", room), "");
}

// --- vocabularies with scores ---

struct Scored {
  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<int32_t> types;
  bool adds_space = false;

  void add(std::string token, double score, int32_t type = 1) {
    tokens.push_back(std::move(token));
    scores.push_back(score);
    types.push_back(type);
  }
  Result<std::unique_ptr<Tokenizer>> make() const {
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    return make_bpe(GgufVocab{.model = "llama",
                              .tokens = views,
                              .scores = scores,
                              .token_types = types,
                              .bos = {},
                              .eos = {},
                              .eot = {},
                              .adds_space = adds_space});
  }
};

Scored with_bytes() {
  Scored vocab;
  vocab.add("<unk>", 0, 2);
  vocab.add("<s>", 0, 3);
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    vocab.add({'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'}, 0, 6);
  return vocab;
}

TEST(ScoredVocab, MergesTheHighestScoreFirstAndTheLeftmostOfEqualOnes) {
  Scored vocab = with_bytes();
  for (const char* c : {"\u2581", "a", "b", "c"}) vocab.add(c, -100);  // 258 to 261
  vocab.add("ab", -2);                                                 // 262
  vocab.add("bc", -1);                                                 // 263
  vocab.add("aa", -3);                                                 // 264
  vocab.add("\u2581a", -4);                                            // 265
  vocab.add("aabc", -9);                                               // 266
  const auto t = vocab.make();
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(encode(**t, "abc"), (Ids{259, 263}));  // bc before ab
  EXPECT_EQ(encode(**t, "aaa"), (Ids{264, 259}));  // the left pair
  EXPECT_EQ(encode(**t, "aabc"), (Ids{266}));      // bc, aa, and both
  EXPECT_EQ(encode(**t, " a"), (Ids{265}));
  EXPECT_EQ(encode(**t, "\u00E9<s>a"), (Ids{2 + 0xC3, 2 + 0xA9, 1, 259}));
  EXPECT_EQ(encode(**t, "<s>", false).size(), 3u);  // three bytes
  EXPECT_EQ(decode(**t, Ids{265, 2 + 0xC3, 2 + 0xA9}), " a\u00E9");

  vocab.adds_space = true;
  const auto spaced = vocab.make();
  ASSERT_TRUE(spaced) << spaced.error().message;
  EXPECT_EQ(encode(**spaced, "ab<s>b"), (Ids{258, 262, 1, 258, 260}));
  EXPECT_EQ(decode(**spaced, Ids{258, 262, 1, 258, 260}), "ab b");
}

TEST(ScoredVocab, FindsUserDefinedTokensInTheNormalizedText) {
  Scored vocab = with_bytes();
  for (const char* c : {"\u2581", "a"}) vocab.add(c, -100);  // 258, 259
  vocab.add("  ", -1000, 4);                                 // 260
  const auto t = vocab.make();
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(encode(**t, "a   a"), (Ids{259, 260, 258, 259}));
  EXPECT_EQ(encode(**t, "a \u2581"), (Ids{259, 260}));
  EXPECT_EQ(decode(**t, Ids{259, 260}), "a  ");
}

// The merges of the small vocabulary as scores give its ids.
TEST(ScoredVocab, EqualsTheVocabularyWithMerges) {
  Json json = chars_json();
  Scored vocab;
  for (size_t i = 0; i < json["model"]["vocab"].size(); ++i) vocab.add("", 0);
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    const auto i = id.get<size_t>();
    vocab.tokens[i] = token;
    vocab.types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    vocab.scores[i] = -1000;
  }
  double rank = 0;
  for (const Json& merge : json["model"]["merges"]) {
    const auto whole = merge[0].get<std::string>() + merge[1].get<std::string>();
    vocab.scores[json["model"]["vocab"][whole].get<size_t>()] = -(++rank);
  }
  const auto by_scores = vocab.make();
  ASSERT_TRUE(by_scores) << by_scores.error().message;
  const auto by_merges = make(json);
  ASSERT_TRUE(by_merges);
  std::mt19937 random(3);
  const std::string letters = "the cat in an e's,  re-am\n";
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (auto n = random() % 80; n > 0; --n) text += letters[random() % letters.size()];
    EXPECT_EQ(encode(**by_scores, text), encode(*by_merges, text)) << text;
  }
}

TEST(ScoredVocab, SaysWhatIsWrong) {
  const auto error_after = [](const auto& change) {
    Scored vocab = with_bytes();
    vocab.add("a", -1);  // 258
    change(vocab);
    const auto made = vocab.make();
    return made ? "no error" : made.error().message;
  };
  EXPECT_EQ(error_after([](Scored&) {}), "no error");
  EXPECT_EQ(error_after([](Scored& v) { v.scores.pop_back(); }),
            "tokenizer.ggml.scores has 258 entries for 259 tokens");
  EXPECT_EQ(error_after([](Scored& v) { v.scores[7] = NAN; }),
            "tokenizer.ggml.scores has a score that is no number");
  EXPECT_EQ(error_after([](Scored& v) { v.types[9] = 1; }),
            "tokenizer.ggml.tokens has 255 of the 256 bytes");
  EXPECT_EQ(error_after([](Scored& v) { v.types[258] = 6; }),
            "tokenizer.ggml.tokens[258] is \"a\", but by its type a byte such as <0x0A>");
  EXPECT_EQ(error_after([](Scored& v) { v.types[258] = 7; }),
            "tokenizer.ggml.token_type[258] is 7; a vocabulary with scores has the types 1 to 6");
  EXPECT_EQ(error_after([](Scored& v) { v.tokens[258] = "a\xFF"; }),
            "tokenizer.ggml.tokens[258] is empty or not valid UTF-8");
  EXPECT_EQ(error_after([](Scored& v) { v.types[258] = 4; }), "no error");
  EXPECT_EQ(error_after([](Scored& v) { v.types[258] = 5; }),
            "tokenizer.ggml.tokens has no token of one character");
  EXPECT_EQ(error_after([](Scored& v) { v.add(std::string(513, 'a'), 0); }),
            "tokenizer.ggml.tokens[259] has 513 bytes; more than 512 in a vocabulary with scores "
            "are not known here");
  EXPECT_EQ(error_after([](Scored& v) {
              v.add("  ", 0, 4);
              v.add(" \u2581", 0, 4);
            }),
            "tokenizer.ggml.tokens has two user-defined tokens \"\u2581\u2581\"");
}

// --- what tokenizer.json of that kind must not hold ---

template <class Change>
std::string error_after(const Change& change) {
  Json json = chars_json();
  change(json);
  const auto made = make_bpe(json.dump(), "");
  return made ? "no error" : made.error().message;
}

TEST(TokenizerSteps, AreRefusedByName) {
  EXPECT_EQ(error_after([](Json&) {}), "no error");
  EXPECT_EQ(error_after([](Json& j) { j["model"]["vocab"].erase("<0x0A>"); }),
            "tokenizer.json: model.byte_fallback is true, but model.vocab has no \"<0x0A>\"");
  EXPECT_EQ(error_after([](Json& j) { j["model"]["ignore_merges"] = true; }),
            "tokenizer.json: model.ignore_merges is known for byte-level vocabularies only");
  EXPECT_EQ(error_after([](Json& j) { j["model"]["unk_token"] = "<none>"; }),
            "tokenizer.json: model.unk_token \"<none>\" is no token");
  EXPECT_EQ(error_after([](Json& j) {
              j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " "}}}};
            }),
            "tokenizer.json: the normalizer Replace without a String pattern is not known here");
  EXPECT_EQ(
      error_after([](Json& j) { j["decoder"]["decoders"].erase(2); }),
      "tokenizer.json: its pre_tokenizer has no ByteLevel step, and its decoder no Replace of "
      "bars by spaces with a Fuse behind it");
  EXPECT_EQ(error_after([](Json& j) {
              j["decoder"]["decoders"].push_back(
                  {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 1}});
            }).substr(0, 65),
            "tokenizer.json: the decoder \"Strip\" is not known here as it stand");
  EXPECT_EQ(
      error_after([](Json& j) {
        j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "q"}}}, {"content", ""}};
        j["added_tokens"].push_back(
            {{"id", 900}, {"content", "qq"}, {"normalized", true}, {"special", false}});
      }),
      "tokenizer.json: added_tokens \"qq\" is normalized to nothing, or to what another is");
}

TEST(TokenizerJson, AnObjectWithoutANameIsLikeAnyOther) {
  Json json = chars_json();
  json[""] = Json{{"a", 1}};
  json["model"][""] = Json{{"a", 1}};
  EXPECT_NE(make(json), nullptr);
}

}  // namespace
}  // namespace paceline
