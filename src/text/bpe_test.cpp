// What readers of BPE files refuse, and how they say it.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/synth_vocab.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

struct Parts {
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
  std::string pre = "gpt-2";
  std::optional<int64_t> bos, eos, eot;
  bool adds_bos = false;
};
// Ids 0 to 4: a, b, c, ab and a special token.
Parts small() {
  return {{"a", "b", "c", "ab", "<|end|>"}, {"a b"}, {1, 1, 1, 1, 3}, "gpt-2", {}, {}, {}};
}

Result<std::unique_ptr<Tokenizer>> make(const Parts& p) {
  const std::vector<std::string_view> tokens(p.tokens.begin(), p.tokens.end());
  const std::vector<std::string_view> merges(p.merges.begin(), p.merges.end());
  return make_bpe(GgufVocab{.tokens = tokens,
                            .merges = merges,
                            .token_types = p.types,
                            .pre = p.pre,
                            .bos = p.bos,
                            .eos = p.eos,
                            .eot = p.eot,
                            .adds_bos = p.adds_bos});
}
template <class Change>
std::string error_after(const Change& change) {
  Parts parts = small();
  change(parts);
  const auto made = make(parts);
  return made ? "no error" : made.error().message;
}

TEST(GgufVocab, MakesASmallTokenizer) {
  Parts parts = small();
  parts.eos = 4;
  parts.eot = 4;
  const auto made = make(parts);
  ASSERT_TRUE(made) << made.error().message;
  std::vector<TokenId> ids;
  (*made)->encode("cabx<|end|>", true,
                  ids);  // x has no token and is dropped, as the reference does
  EXPECT_EQ(ids, (std::vector<TokenId>{2, 3, 4}));
  EXPECT_EQ((*made)->description(), "byte-level BPE, gpt-2, 253 bytes without a token");
  EXPECT_EQ((*made)->end_ids().size(), 1u);
  EXPECT_FALSE((*made)->adds_bos());
}

TEST(GgufVocab, SaysWhatIsWrong) {
  EXPECT_EQ(
      error_after([](Parts& p) { p.pre = "tekken"; }),
      "tokenizer.ggml.pre: the pre-tokenizer \"tekken\" is not known; known are gpt-2, smollm, "
      "llama-bpe, qwen2, qwen35 and gpt-4o");
  EXPECT_EQ(error_after([](Parts& p) { p.pre = "default"; }),
            "tokenizer.ggml.pre: the pre-tokenizer \"default\" is not known; known are gpt-2, "
            "smollm, llama-bpe, qwen2, qwen35 and gpt-4o");
  EXPECT_EQ(error_after([](Parts& p) { p.pre = ""; }),
            "the file has no tokenizer.ggml.pre, so how it cuts text into words is not known");
  EXPECT_EQ(error_after([](Parts& p) { p.tokens[2] = "a"; }),
            "tokenizer.ggml.tokens[0] and [2] are both \"a\"");
  EXPECT_EQ(error_after([](Parts& p) { p.merges[0] = "a d"; }),
            "tokenizer.ggml.merges: merge 0 (\"a d\") needs \"d\", which is not in the vocabulary");
  EXPECT_EQ(
      error_after([](Parts& p) { p.merges[0] = "b a"; }),
      "tokenizer.ggml.merges: merge 0 (\"b a\") needs \"ba\", which is not in the vocabulary");
  EXPECT_EQ(error_after([](Parts& p) { p.merges[0] = "ab"; }),
            "tokenizer.ggml.merges[0] is \"ab\", not two tokens with one blank between them");
  EXPECT_EQ(error_after([](Parts& p) {
              p.merges = {"a b", "a b"};
            }),
            "tokenizer.ggml.merges: merge 1 joins two tokens that an earlier one joins");
  EXPECT_EQ(error_after([](Parts& p) { p.tokens[1] = "b c"; }),
            "tokenizer.ggml.tokens[1] is \"b c\", which is no text in the byte alphabet of a "
            "byte-level vocabulary");
  EXPECT_EQ(error_after([](Parts& p) { p.tokens[1] = "\xFF\n"; }),
            "tokenizer.ggml.tokens[1] is \"\uFFFD?\", which is no text in the byte alphabet of a "
            "byte-level vocabulary");
  EXPECT_EQ(error_after([](Parts& p) { p.tokens[4] = "\xFF"; }),
            "tokenizer.ggml.tokens[4] is empty or not valid UTF-8");
  EXPECT_EQ(error_after([](Parts& p) { p.tokens[4] = ""; }),
            "tokenizer.ggml.tokens[4] is empty or not valid UTF-8");
  EXPECT_EQ(error_after([](Parts& p) { p.types.pop_back(); }),
            "tokenizer.ggml.token_type has 4 entries for 5 tokens");
  EXPECT_EQ(error_after([](Parts& p) { p.types[0] = 6; }),
            "tokenizer.ggml.token_type[0] is 6; a byte-level vocabulary has the types 1 to 5");
  EXPECT_EQ(error_after([](Parts& p) { p.eos = 5; }),
            "tokenizer.ggml.eos_token_id is 5, but there are 5 tokens");
  EXPECT_EQ(error_after([](Parts& p) { p.bos = -1; }),
            "tokenizer.ggml.bos_token_id is -1, but there are 5 tokens");
  EXPECT_EQ(error_after([](Parts& p) { p.adds_bos = true; }),
            "tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
  EXPECT_EQ(error_after([](Parts& p) { p = {}; }), "tokenizer.ggml.tokens has 0 entries");
}

Json small_json() {
  return Json::parse(synth_tokenizer_json(*synth_vocab(kSynthVocabMinimum + 1)));
}

template <class Change>
std::string json_error_after(const Change& change, std::string_view config = "") {
  Json json = small_json();
  change(json);
  const auto made = make_bpe(json.dump(), config);
  return made ? "no error" : made.error().message;
}

TEST(TokenizerJson, SaysWhatItDoesNotKnow) {
  const auto pre = [](Json step) {
    return json_error_after([&](Json& j) { j["pre_tokenizer"] = std::move(step); });
  };
  EXPECT_EQ(
      pre({{"type", "Whitespace"}}),
      "tokenizer.json: the pre_tokenizer \"Whitespace\" is not known here; known are Sequence, "
      "Digits, Split, ByteLevel and Metaspace");
  EXPECT_EQ(pre({{"type", "Metaspace"}, {"replacement", "_"}}),
            "tokenizer.json: the pre_tokenizer Metaspace with replacement \"_\" is not known here; "
            "\u2581 is");
  EXPECT_EQ(pre({{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "last"}}),
            "tokenizer.json: the pre_tokenizer Metaspace with prepend_scheme \"last\" is not known "
            "here");
  EXPECT_EQ(pre({{"type", "Digits"}, {"individual_digits", false}}),
            "tokenizer.json: the pre_tokenizer Digits without individual_digits is not known here");
  EXPECT_EQ(
      pre({{"type", "Digits"}, {"individual_digits", true}}),
      "tokenizer.json: the decoder \"ByteLevel\" is not known here as it stands; known are "
      "ByteLevel with the pre_tokenizer ByteLevel, and a Sequence of Replace (\"\u2581\" by a "
      "space), ByteFallback, Fuse and Strip (of spaces in front)");
  EXPECT_EQ(
      pre({{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "\\d"}}}}),
      "tokenizer.json: pre_tokenizer Split: the split pattern \"\\d\" is not known; known are "
      "those of GPT-2, Llama 3, Qwen2, Qwen3.5 and GPT-4o");
  EXPECT_EQ(pre({{"type", "Split"}, {"behavior", "Removed"}, {"pattern", {{"Regex", "\\d"}}}}),
            "tokenizer.json: the pre_tokenizer Split with behavior \"Removed\" is not known here; "
            "Isolated is");
  EXPECT_EQ(json_error_after([](Json& j) {
              j["normalizer"] = {{"type", "NFKC"}};
            }),
            "tokenizer.json: the normalizer \"NFKC\" is not known here; known are Sequence, NFC, "
            "Replace and Prepend");
  EXPECT_EQ(json_error_after([](Json& j) {
              j["decoder"] = {{"type", "WordPiece"}};
            }),
            "tokenizer.json: the decoder \"WordPiece\" is not known here with the pre_tokenizer "
            "ByteLevel; ByteLevel is");
  EXPECT_EQ(json_error_after([](Json& j) {
              j["post_processor"] = {{"type", "BertProcessing"}};
            }),
            "tokenizer.json: the post_processor \"BertProcessing\" is not known here");
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["type"] = "Unigram"; }),
            "tokenizer.json: model.type is \"Unigram\"; only BPE is known here");
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["dropout"] = 0.1; }),
            "tokenizer.json: model.dropout would make ids random");
}

TEST(TokenizerJson, SaysWhatIsWrong) {
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["vocab"]["a"] = 5; }).substr(0, 41),
            "tokenizer.json: the id 5 stands for two t");
  EXPECT_EQ(
      json_error_after([](Json& j) { j["model"]["vocab"]["a"] = 2147483648; }),
      "tokenizer.json: model.vocab[\"a\"] has the id 2147483648, but only 260 tokens are listed");
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["vocab"]["a"] = "1"; }),
            "tokenizer.json: model.vocab[\"a\"] has no integer id");
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["vocab"]["\n"] = 300; }),
            "tokenizer.json: model.vocab has \"?\", which is neither text in the byte alphabet nor "
            "among added_tokens");
  EXPECT_EQ(json_error_after([](Json& j) { j["model"]["merges"] = {"x"}; }),
            "tokenizer.json: model.merges[0] does not name two tokens");
  EXPECT_EQ(json_error_after([](Json& j) { j["added_tokens"][1]["id"] = 7; }),
            "tokenizer.json: added_tokens \"<|im_start|>\" has the id 7, but 1 in model.vocab");
  EXPECT_EQ(json_error_after([](Json& j) { j["added_tokens"].push_back(j["added_tokens"][0]); }),
            "tokenizer.json: added_tokens \"<|endoftext|>\" is listed twice, or its id 0 is");
  EXPECT_EQ(json_error_after([](Json&) {}, R"({"bos_token": "<s>"})"),
            "tokenizer_config.json: bos_token is \"<s>\", which tokenizer.json does not have");
  EXPECT_EQ(json_error_after([](Json&) {}, R"({"add_bos_token": true})"),
            "tokenizer_config.json: add_bos_token is true, but there is no bos_token");
  EXPECT_EQ(json_error_after([](Json&) {}, "["), "tokenizer_config.json: it is no JSON object");

  std::string twice = small_json().dump();
  twice.replace(twice.find("\"vocab\":{"), 9, "\"vocab\":{\"a\":5,");
  const auto made = make_bpe(twice, "");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "tokenizer.json: model.vocab names a token twice");
  for (const char* source :
       {"", "{", "[]", "null", "{}", "{\"model\":3}", "{\"model\":{\"type\":[]}}",
        R"({"model":{"type":"BPE","vocab":[],"merges":{}}})", "\xFF"})
    EXPECT_FALSE(make_bpe(source, "")) << source;
  EXPECT_FALSE(make_bpe(std::string(100'000, '['), ""));
}

TEST(TokenizerJson, ReadsWhetherABosComesFirst) {
  const Json bos_first = {{"type", "Sequence"},
                          {"processors",
                           {{{"type", "ByteLevel"}},
                            {{"type", "TemplateProcessing"},
                             {"single",
                              {{{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}},
                               {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}}}};
  Json json = small_json();
  json["post_processor"] = bos_first;
  const auto with = make_bpe(json.dump(), "");
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_TRUE((*with)->adds_bos());
  EXPECT_EQ((*with)->bos(), 1);
  const auto without = make_bpe(json.dump(), R"({"add_bos_token": false})");
  ASSERT_TRUE(without);
  EXPECT_FALSE((*without)->adds_bos());

  const auto object = make_bpe(small_json().dump(), R"({"eos_token": {"content": "<|im_end|>"}})");
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ((*object)->end_ids().size(), 1u);
  EXPECT_EQ((*object)->end_ids()[0], 2);
}

}  // namespace
}  // namespace paceline
