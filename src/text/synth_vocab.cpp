#include "text/synth_vocab.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/byte_alphabet.h"

namespace paceline {

namespace {

constexpr const char* kSpecials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr int kMaximum = 1 << 22;

}  // namespace

Result<SynthVocab> synth_vocab(int size) {
  if (size < kSynthVocabMinimum || size > kMaximum)
    return Error{ErrorCode::BadUsage, fmt::format("a vocabulary of {} tokens cannot be made; it "
                                                  "takes {} to {}",
                                                  size, kSynthVocabMinimum, kMaximum)};
  SynthVocab vocab;
  for (const char* special : kSpecials) {
    vocab.tokens.emplace_back(special);
    vocab.token_types.push_back(3);
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocab.tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    vocab.token_types.push_back(1);
  }
  // Words over sixteen frequent letters, shortest first: every pair, then every triple, and so on.
  // A word is its beginning merged with its last letter, so one word has one merge and all differ.
  constexpr std::string_view kLetters = "etaoinsrhldcumfp";
  std::vector<std::string> shorter;
  for (char letter : kLetters) shorter.emplace_back(1, letter);
  while (static_cast<int>(vocab.tokens.size()) < size) {
    std::vector<std::string> longer;
    for (const std::string& word : shorter) {
      for (char letter : kLetters) {
        if (static_cast<int>(vocab.tokens.size()) == size) return vocab;
        longer.push_back(word + letter);
        vocab.merges.push_back(fmt::format("{} {}", word, letter));
        vocab.tokens.push_back(longer.back());
        vocab.token_types.push_back(1);
      }
    }
    shorter = std::move(longer);
  }
  return vocab;
}

std::string synth_tokenizer_json(const SynthVocab& vocab) {
  using Json = nlohmann::json;
  Json added = Json::array();
  Json tokens = Json::object();
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    tokens[vocab.tokens[id]] = id;
    if (vocab.token_types[id] != 3) continue;
    added.push_back({{"id", id},
                     {"content", vocab.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json root = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer",
                      {{"type", "Sequence"}, {"pretokenizers", Json::array({digits, byte_level})}}},
                     {"post_processor", nullptr},
                     {"decoder", byte_level},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", tokens},
                       {"merges", vocab.merges}}}};
  return root.dump();
}

std::string synth_tokenizer_config(const SynthVocab& vocab) {
  const nlohmann::json config = {{"add_bos_token", false},
                                 {"bos_token", vocab.tokens[static_cast<size_t>(vocab.bos)]},
                                 {"eos_token", vocab.tokens[static_cast<size_t>(vocab.eos)]},
                                 {"chat_template", synth_chat_template()},
                                 {"clean_up_tokenization_spaces", false},
                                 {"tokenizer_class", "PreTrainedTokenizerFast"}};
  return config.dump();
}

std::string synth_chat_template() {
  return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
         "message['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
         "{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

}  // namespace paceline
