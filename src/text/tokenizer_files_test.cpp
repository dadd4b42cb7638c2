// GGUF vocabularies written as tokenizer.json give the ids they gave before.
#include "text/tokenizer_files.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "text/byte_alphabet.h"

namespace paceline {
namespace {

struct Parts {
  std::string model = "gpt2", pre;
  std::vector<std::string> tokens, merges;
  std::vector<double> scores;
  std::vector<int32_t> types;
  std::optional<int64_t> bos, eos;
  bool adds_bos = false, adds_space = true;

  TokenId add(const std::string& token, int32_t type, double score = 0) {
    tokens.push_back(token);
    types.push_back(type);
    scores.push_back(score);
    return static_cast<TokenId>(tokens.size()) - 1;
  }
  template <class Use>
  auto on_vocab(const Use& use) const {
    const std::vector<std::string_view> token_views(tokens.begin(), tokens.end());
    const std::vector<std::string_view> merge_views(merges.begin(), merges.end());
    return use(GgufVocab{.model = model,
                         .tokens = token_views,
                         .merges = merge_views,
                         .scores = scores,
                         .token_types = types,
                         .pre = pre,
                         .bos = bos,
                         .eos = eos,
                         .eot = {},
                         .adds_bos = adds_bos,
                         .adds_space = adds_space});
  }
  Result<TokenizerFiles> files(const TokenizerSettings& settings = {}) const {
    return on_vocab([&](const GgufVocab& vocab) { return tokenizer_files(vocab, settings); });
  }
  std::unique_ptr<Tokenizer> from_gguf() const {
    auto made = on_vocab([](const GgufVocab& vocab) { return make_bpe(vocab); });
    if (!made) ADD_FAILURE() << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  std::unique_ptr<Tokenizer> from_files() const {
    const auto texts = files();
    if (!texts) ADD_FAILURE() << texts.error().message;
    if (!texts) return nullptr;
    auto made = make_bpe(texts->tokenizer_json, texts->tokenizer_config_json);
    if (!made) ADD_FAILURE() << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
};

// All bytes, and merges that a cut between digits, at blanks or line ends keeps from happening.
Parts byte_level(const std::string& pre) {
  Parts parts;
  parts.pre = pre;
  parts.bos = parts.add("<s>", 3);
  parts.eos = parts.add("</s>", 3);
  parts.add("<pad1>", 5);
  parts.add("<user tool>", 4);
  for (int byte = 0; byte < 256; ++byte)
    parts.add(to_byte_alphabet(std::string(1, static_cast<char>(byte))), 1);
  for (const auto& [left, right] :
       {std::pair("1", "1"), std::pair("11", "1"), std::pair("a", "a"), std::pair(" ", "a"),
        std::pair(" ", " "), std::pair("\n", "\n"), std::pair(".", "\n"), std::pair("'", "S"),
        std::pair("a", "B"), std::pair("S", " "), std::pair("\xC3", "\xA9")}) {
    parts.merges.push_back(to_byte_alphabet(left) + " " + to_byte_alphabet(right));
    parts.add(to_byte_alphabet(std::string(left) + right), 1);
  }
  return parts;
}

constexpr const char* kTexts[] = {"",
                                  "a",
                                  " aa  a",
                                  "1111 11111",
                                  "xaB",
                                  "x.\n\n a",
                                  "aaB'S aB a's 1.\n",
                                  "e\u0301\u00e9 \u4e16\U0001f600",
                                  "<s>aa</s> <user tool>1 <pad1>",
                                  "\xff\xfe a"};

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text, bool specials) {
  std::vector<TokenId> ids;
  tokenizer.encode(text, specials, ids);
  return ids;
}

void expect_same(const Parts& parts) {
  const auto before = parts.from_gguf();
  const auto after = parts.from_files();
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->adds_bos(), after->adds_bos());
  EXPECT_EQ(before->bos(), after->bos());
  EXPECT_TRUE(std::ranges::equal(before->end_ids(), after->end_ids()));
  for (const char* text : kTexts)
    for (const bool specials : {false, true}) {
      const auto ids = ids_of(*before, text, specials);
      EXPECT_EQ(ids, ids_of(*after, text, specials)) << text;
      EXPECT_EQ(decode(*before, ids), decode(*after, ids)) << text;
      EXPECT_EQ(decode(*before, ids, true), decode(*after, ids, true)) << text;
    }
}

TEST(TokenizerFiles, ByteLevelVocabulariesOfEveryKindKeepTheirIds) {
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "gpt-4o"}) {
    SCOPED_TRACE(pre);
    Parts parts = byte_level(pre);
    expect_same(parts);
    parts.adds_bos = true;
    expect_same(parts);
  }
}

// Were the steps of one kind written for another, the test above would see it.
TEST(TokenizerFiles, TheTextsTellTheKindsApart) {
  std::map<std::vector<std::vector<TokenId>>, std::string> all;
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"}) {
    const auto tokenizer = byte_level(pre).from_files();
    ASSERT_TRUE(tokenizer);
    std::vector<std::vector<TokenId>> ids;
    for (const char* text : kTexts) ids.push_back(ids_of(*tokenizer, text, false));
    EXPECT_EQ(all.emplace(ids, pre).first->second, pre);
  }
  EXPECT_EQ(all.size(), 5u);
}

Parts scored(bool adds_space, bool bytes) {
  Parts parts;
  parts.model = "llama";
  parts.adds_space = adds_space;
  parts.add("<unk>", 2);
  parts.bos = parts.add("<s>", 3);
  parts.eos = parts.add("</s>", 3);
  parts.adds_bos = true;
  if (bytes) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte)
      parts.add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6);
  }
  double score = 0;
  for (const char* token : {"a", "b", "1", "\u2581", "aa", "\u2581a", "aab", "\u2581aa", "11",
                            "\u2581\u2581", "ab", "\u00e9"})
    parts.add(token, 1, score -= 1);
  parts.add("<unused>", 5);
  return parts;
}

TEST(TokenizerFiles, VocabulariesWithScoresKeepTheirIds) {
  for (const bool adds_space : {false, true})
    for (const bool bytes : {false, true}) {
      SCOPED_TRACE(adds_space);
      SCOPED_TRACE(bytes);
      expect_same(scored(adds_space, bytes));
    }
  Parts gemma = scored(false, true);
  gemma.add("<user tool>", 4);
  gemma.add("\n\n", 4);
  expect_same(gemma);
}

TEST(TokenizerFiles, WhatTokenizerJsonCannotSayIsRefused) {
  Parts parts = scored(true, true);
  parts.add("<tool>", 4);
  const auto files = parts.files();
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, ErrorCode::Unsupported);
  EXPECT_NE(files.error().message.find("user-defined"), std::string::npos);
  Parts unknown = byte_level("tekken");
  EXPECT_FALSE(unknown.files());
}

TEST(TokenizerFiles, SettingsStandInTheConfig) {
  const auto files = byte_level("smollm").files(
      {.pad = 1, .chat_template = "{{ \"x\ny\" }}", .context_length = 77});
  ASSERT_TRUE(files);
  const auto config = nlohmann::json::parse(files->tokenizer_config_json);
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["pad_token"], "</s>");
  EXPECT_EQ(config["model_max_length"], 77);
  EXPECT_EQ(config["chat_template"], "{{ \"x\ny\" }}");
  const auto specials = nlohmann::json::parse(files->special_tokens_map_json);
  EXPECT_EQ(specials.size(), 3u);
  const auto json = nlohmann::json::parse(files->tokenizer_json);
  EXPECT_EQ(json["model"]["vocab"].size(), 3 + 256 + 11u);  // without the unused one
  EXPECT_EQ(json["model"]["merges"].size(), 11u);
  EXPECT_EQ(json["added_tokens"].size(), 3u);
}

}  // namespace
}  // namespace paceline
