// The tokenizer against the tokenizers library, over small vocabularies that need no model.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "text/bpe.h"
#include "text/synth_vocab.h"
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

std::unique_ptr<Tokenizer> tiny(const std::string& name) {
  auto made = make_bpe(read_file("tokenizer_tiny_" + name + ".json"), "");
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : nullptr;
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool read_specials = false) {
  Ids ids;
  tokenizer.encode(text, read_specials, ids);
  return ids;
}

TEST(Utf8, ReplacesEachMaximalInvalidPart) {
  // Unicode 15, section 3.9, table 3-8 and the text before it.
  EXPECT_EQ(replace_invalid_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                                 "b\x80"
                                 "c\x80\xBF"
                                 "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), "\uFFFD\uFFFD");            // overlong NUL
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\xA6"), "\uFFFD");              // cut short at the end
  EXPECT_EQ(replace_invalid_utf8("\xFF"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8(std::string("\0\xF4\x90", 3)), std::string("\0\uFFFD\uFFFD", 7));
  EXPECT_TRUE(is_valid_utf8("na\u00EFve \U0001F999"));
  EXPECT_FALSE(is_valid_utf8("12345678\xE2\x82"));
}

TEST(Tokenizer, GivesTheIdsOfTheReferenceForEveryWayOfCutting) {
  for (const char* name : {"gpt2", "smollm", "llama3", "qwen2", "prefix"}) {
    const auto tokenizer = tiny(name);
    ASSERT_TRUE(tokenizer);
    std::ifstream lines(std::string(PACELINE_SOURCE_DIR) + "/tests/golden/tokenizer_tiny.jsonl");
    int n_lines = 0;
    for (std::string line; std::getline(lines, line); ++n_lines) {
      const Json golden = Json::parse(line);
      const auto text = golden["text"].get<std::string>();
      EXPECT_EQ(encode(*tokenizer, text, true), golden[name].get<Ids>()) << name << ": " << line;
    }
    EXPECT_GT(n_lines, 300);
  }
}

TEST(Tokenizer, SplitsDigitsBeforeThePattern) {
  const auto smollm = tiny("smollm");
  const auto gpt2 = tiny("gpt2");
  const auto pieces = [](const Tokenizer& t, std::string_view text) {
    std::vector<std::string> out;
    for (TokenId id : encode(t, text)) out.emplace_back(t.bytes(id));
    return out;
  };
  // Both blanks stay together in front of a digit, and no digit takes a blank along.
  EXPECT_EQ(pieces(*smollm, "  7"), (std::vector<std::string>{"  ", "7"}));
  EXPECT_EQ(pieces(*gpt2, "  7"), (std::vector<std::string>{" ", " ", "7"}));
}

TEST(Tokenizer, ReadsSpecialTokensOnlyWhenTold) {
  const auto t = tiny("smollm");
  const std::string text = "<|im_start|>user";
  EXPECT_EQ(encode(*t, text, true)[0], 1);
  const Ids plain = encode(*t, text, false);
  EXPECT_TRUE(
      std::none_of(plain.begin(), plain.end(), [&](TokenId id) { return t->is_special(id); }));
  std::string back;
  for (TokenId id : plain) back += t->bytes(id);
  EXPECT_EQ(back, text);
  EXPECT_EQ(t->specials().id_of("<|im_end|>"), 2);
  EXPECT_EQ(t->specials().id_of("<think>"), std::nullopt);  // added, but not special
  EXPECT_EQ(encode(*t, "<think>", false).size(), 1u);       // and so read in any text
  EXPECT_EQ(decode(*t, encode(*t, "a<|im_end|><think>b", true)), "a<think>b");
}

TEST(Tokenizer, GivesNothingForIdsThatDoNotExist) {
  const auto t = tiny("gpt2");
  for (TokenId id : {-1, t->vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(t->bytes(id), "");
    EXPECT_FALSE(t->is_special(id));
  }
}

std::string random_text(std::mt19937& random, int n_chars) {
  static constexpr uint32_t kLimits[] = {0x80, 0x80, 0x800, 0x3100, 0x10000, 0x110000};
  std::string text;
  while (n_chars-- > 0) {
    const uint32_t code = random() % kLimits[random() % std::size(kLimits)];
    if (code >= 0xD800 && code < 0xE000) continue;
    append_utf8(code, text);
    if (random() % 4 == 0) text += "  \n\t 7'a"[random() % 8];
  }
  return text;
}

TEST(Tokenizer, DecodesWhatItEncoded) {
  std::mt19937 random(5);
  for (const char* name : {"gpt2", "smollm", "llama3", "qwen2"}) {
    const auto t = tiny(name);
    for (int i = 0; i < 400; ++i) {
      const std::string text = random_text(random, static_cast<int>(random() % 60));
      EXPECT_EQ(decode(*t, encode(*t, text)), text) << name;
    }
  }
}

TEST(Tokenizer, ReplacesInvalidUtf8BeforeEncoding) {
  std::mt19937 random(6);
  const auto t = tiny("smollm");
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (auto n = random() % 24; n > 0; --n)
      bytes += static_cast<char>(random() % 3 ? 0x80 + random() % 128 : random());
    const std::string valid = replace_invalid_utf8(bytes);
    EXPECT_EQ(encode(*t, bytes), encode(*t, valid));
    EXPECT_EQ(decode(*t, encode(*t, bytes, true)), valid);
  }
}

TEST(Tokenizer, TakesLongPiecesInReasonableTime) {
  const auto t = tiny("gpt2");
  std::string text;
  for (unsigned i = 0; i < 1'000'000; ++i) text += "the inn"[i * i % 7];
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  EXPECT_EQ(decode(*t, encode(*t, text)), text);  // a quadratic merge would take hours
  EXPECT_EQ(decode(*t, encode(*t, std::string(2'000'000, 'a'))).size(), 2'000'000u);
  EXPECT_EQ(decode(*t, encode(*t, std::string(2'000'000, ' '))).size(), 2'000'000u);
}

// Every cut of every text into tokens of bytes gives what the whole gives, and never half a
// character.
TEST(StreamDecoder, EqualsDecodingAtOnceForEveryCut) {
  const auto t = tiny("gpt2");
  Ids byte_ids(256);
  for (TokenId id = 0; id < t->vocab_size(); ++id)
    if (t->bytes(id).size() == 1) byte_ids[static_cast<uint8_t>(t->bytes(id)[0])] = id;
  const std::string texts[] = {
      "a\u00E9\u20AC\U0001F999z",          "e\u0301\u0302", "\U0001F469\u200D\U0001F4BB",
      "\xF0\x9F\xA6x\x80\xE2\x82\xF0\x9F", "\xC3",          "\xED\xA0\x80\xF4\x90\x80"};
  for (const std::string& text : texts) {
    std::string streamed;
    StreamDecoder decoder(*t);
    for (char c : text) {
      std::string delta;
      decoder.add(byte_ids[static_cast<uint8_t>(c)], delta);
      EXPECT_TRUE(is_valid_utf8(delta));
      EXPECT_EQ(encode(*t, delta).empty(), delta.empty());
      streamed += delta;
      decoder.add(0, streamed);  // a special token between the bytes of a character changes nothing
    }
    decoder.finish(streamed);
    EXPECT_EQ(streamed, replace_invalid_utf8(text));
  }
}

TEST(StreamDecoder, HoldsBackOnlyWhatIsUnfinished) {
  const auto t = tiny("gpt2");
  std::string text;
  StreamDecoder decoder(*t);
  const std::string clef = "\U0001D11E";
  for (size_t i = 0; i < clef.size(); ++i) {
    for (TokenId id = 0; id < t->vocab_size(); ++id)
      if (t->bytes(id) == clef.substr(i, 1)) decoder.add(id, text);
    EXPECT_EQ(text, i + 1 < clef.size() ? "" : clef);
  }
  decoder.finish(text);
  EXPECT_EQ(text, clef);
}

TEST(SynthVocab, RoundTripsAnyTextFromBothFileKinds) {
  std::mt19937 random(8);
  for (int size : {259, 300, 1000, 4096}) {
    const auto vocab = synth_vocab(size);
    ASSERT_TRUE(vocab) << vocab.error().message;
    ASSERT_EQ(vocab->tokens.size(), static_cast<size_t>(size));
    const std::vector<std::string_view> tokens(vocab->tokens.begin(), vocab->tokens.end());
    const std::vector<std::string_view> merges(vocab->merges.begin(), vocab->merges.end());
    const auto gguf = make_bpe(GgufVocab{.tokens = tokens,
                                         .merges = merges,
                                         .token_types = vocab->token_types,
                                         .pre = vocab->pre,
                                         .bos = vocab->bos,
                                         .eos = vocab->eos,
                                         .eot = {}});
    ASSERT_TRUE(gguf) << gguf.error().message;
    const auto json = make_bpe(synth_tokenizer_json(*vocab), synth_tokenizer_config(*vocab));
    ASSERT_TRUE(json) << json.error().message;
    EXPECT_EQ((*gguf)->vocab_size(), size);
    EXPECT_EQ((*json)->vocab_size(), size);
    EXPECT_EQ((*json)->bos(), (*gguf)->bos());
    EXPECT_EQ(Ids((*json)->end_ids().begin(), (*json)->end_ids().end()),
              Ids((*gguf)->end_ids().begin(), (*gguf)->end_ids().end()));
    for (int i = 0; i < 100; ++i) {
      const std::string text = random_text(random, 40) + "<|im_end|>";
      EXPECT_EQ(decode(**gguf, encode(**gguf, text)), text);
      EXPECT_EQ(encode(**json, text, true), encode(**gguf, text, true));
    }
  }
  EXPECT_FALSE(synth_vocab(258));
}

}  // namespace
}  // namespace paceline
