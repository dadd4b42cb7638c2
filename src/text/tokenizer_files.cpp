#include "text/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "text/bpe_gguf_scores.h"
#include "text/bpe_tokenizer.h"
#include "text/pretokenizer.h"
#include "text/token_index.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

// Of tokenizer.ggml.token_type.
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;
constexpr int32_t kByte = 6;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// {"type": type, ...}
Json step(const char* type, const Json& more = Json::object()) {
  Json json{{"type", type}};
  json.update(more);
  return json;
}

Json sequence(const char* list, Json steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return steps[0];
  return step("Sequence", {{list, std::move(steps)}});
}

Json byte_level(bool use_regex) {
  return step("ByteLevel",
              {{"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}});
}

Json replace(std::string_view from, std::string_view to) {
  return step("Replace", {{"pattern", {{"String", from}}}, {"content", to}});
}

// The steps of tokenizer.ggml.pre. GPT-2's own pattern is the one that ByteLevel has built in.
Result<Json> pre_tokenizer_of(std::string_view pre) {
  const auto cuts = cut_steps_of_pre(pre);
  if (!cuts) return Error{cuts.error().code, "tokenizer.ggml.pre: " + cuts.error().message};
  Json steps = Json::array();
  bool built_in = false;
  for (const CutStep cut : *cuts) {
    if (cut == CutStep::Digits) {
      steps.push_back(step("Digits", {{"individual_digits", true}}));
    } else if (cut == CutStep::Gpt2) {
      built_in = true;
    } else {
      steps.push_back(step("Split", {{"pattern", {{"Regex", pattern_of(cut)}}},
                                     {"behavior", "Isolated"},
                                     {"invert", false}}));
    }
  }
  steps.push_back(byte_level(built_in));
  return sequence("pretokenizers", std::move(steps));
}

class Writer {
 public:
  Writer(const GgufVocab& vocab, const TokenizerSettings& settings)
      : vocab_(vocab), settings_(settings), scored_(vocab.model == "llama") {}

  Result<TokenizerFiles> write() {
    if (auto tokenizer = make_bpe(vocab_); !tokenizer) return tokenizer.error();  // all checks
    auto model = scored_ ? scored_model() : byte_level_model();
    if (!model) return model.error();
    root_["version"] = "1.0";
    root_["truncation"] = nullptr;
    root_["padding"] = nullptr;
    root_["added_tokens"] = added_tokens();
    for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
      root_[key] = key == std::string_view("post_processor") ? post_processor() : steps_[key];
    std::string json = dumped(root_);
    json.pop_back();
    // The two long lists are written as text: as documents of nodes they take much memory.
    std::string settings = dumped(*model);
    settings.pop_back();
    json += fmt::format(",\"model\":{},\"vocab\":{},\"merges\":{}}}}}", settings, vocab_text(),
                        merges_text_);
    return TokenizerFiles{std::move(json), dumped(config()) + "\n", dumped(specials()) + "\n"};
  }

 private:
  // tokenizer.json's model without its lists.
  Json model_settings(bool byte_fallback, bool ignore_merges) const {
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unknown_ ? Json(*unknown_) : Json(nullptr)},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", scored_},
            {"byte_fallback", byte_fallback},
            {"ignore_merges", ignore_merges}};
  }

  Result<Json> byte_level_model() {
    auto pre_tokenizer = pre_tokenizer_of(vocab_.pre);
    if (!pre_tokenizer) return pre_tokenizer.error();
    steps_["pre_tokenizer"] = std::move(*pre_tokenizer);
    steps_["decoder"] = byte_level(true);
    if (vocab_.pre == "qwen2" || vocab_.pre == "qwen35") steps_["normalizer"] = step("NFC");
    std::vector<std::string> lines;
    lines.reserve(vocab_.merges.size());
    for (const std::string_view merge : vocab_.merges) lines.push_back(dumped(Json(merge)));
    merges_text_ = fmt::format("[{}]", fmt::join(lines, ","));
    return model_settings(false, vocab_.pre == "llama-bpe");
  }

  Result<Json> scored_model() {
    const auto has = [&](int32_t type) {
      return std::ranges::find(vocab_.token_types, type) != vocab_.token_types.end();
    };
    if (vocab_.adds_space && has(kUserDefined)) {
      return Error{ErrorCode::Unsupported,
                   "its tokenizer puts a space in front of texts and has user-defined tokens; "
                   "tokenizer.json would put one behind those tokens as well"};
    }
    TokenIndex by_text(vocab_.tokens.size());
    for (size_t i = 0; i < vocab_.tokens.size(); ++i)
      by_text.insert(vocab_.tokens[i], static_cast<TokenId>(i));
    BpeSpec spec;
    if (auto read = read_scored_vocab(vocab_, by_text, spec); !read) return read.error();
    write_ranked_merges(std::move(spec.merges));
    if (spec.unknown >= 0) unknown_ = vocab_.tokens[static_cast<size_t>(spec.unknown)];

    Json normalizers = Json::array();
    Json decoders = Json::array({replace(kSpaceBar, " ")});
    if (vocab_.adds_space) normalizers.push_back(step("Prepend", {{"prepend", kSpaceBar}}));
    normalizers.push_back(replace(" ", kSpaceBar));
    if (has(kByte)) decoders.push_back(step("ByteFallback"));
    decoders.push_back(step("Fuse"));
    if (vocab_.adds_space)
      decoders.push_back(step("Strip", {{"content", " "}, {"start", 1}, {"stop", 0}}));
    steps_["normalizer"] = sequence("normalizers", std::move(normalizers));
    steps_["decoder"] = sequence("decoders", std::move(decoders));
    return model_settings(has(kByte), false);
  }

  // By rank; of one rank in the order of the library's own conversion from SentencePiece.
  void write_ranked_merges(std::vector<Merge> merges) {
    std::ranges::sort(merges, {}, [](const Merge& merge) {
      return std::tuple(merge.rank, merge.merged, merge.left, merge.right);
    });
    const bool has_blanks = std::ranges::any_of(
        vocab_.tokens, [](std::string_view token) { return token.find(' ') != token.npos; });
    std::vector<std::string> lines;
    lines.reserve(merges.size());
    for (const Merge& merge : merges) {
      const std::string_view left = vocab_.tokens[static_cast<size_t>(merge.left)];
      const std::string_view right = vocab_.tokens[static_cast<size_t>(merge.right)];
      lines.push_back(has_blanks ? dumped(Json::array({left, right}))
                                 : dumped(Json(fmt::format("{} {}", left, right))));
    }
    merges_text_ = fmt::format("[{}]", fmt::join(lines, ","));
  }

  // Ids that no text leads to have no entry.
  std::string vocab_text() const {
    std::vector<std::string> entries;
    entries.reserve(vocab_.tokens.size());
    for (size_t id = 0; id < vocab_.tokens.size(); ++id) {
      if (vocab_.token_types[id] == kUnused) continue;
      entries.push_back(fmt::format("{}:{}", dumped(Json(vocab_.tokens[id])), id));
    }
    return fmt::format("{{{}}}", fmt::join(entries, ","));
  }

  Json added_tokens() const {
    Json added = Json::array();
    for (size_t id = 0; id < vocab_.tokens.size(); ++id) {
      const int32_t type = vocab_.token_types[id];
      if (type != kUnknown && type != kControl && type != kUserDefined) continue;
      added.push_back({{"id", id},
                       {"content", vocab_.tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", scored_ && type == kUserDefined},
                       {"special", type != kUserDefined}});
    }
    return added;
  }

  std::optional<std::string_view> token(std::optional<int64_t> id) const {
    if (!id || *id < 0 || static_cast<size_t>(*id) >= vocab_.tokens.size()) return std::nullopt;
    if (vocab_.token_types[static_cast<size_t>(*id)] == kUnused) return std::nullopt;
    return vocab_.tokens[static_cast<size_t>(*id)];
  }

  Json post_processor() const {
    if (!vocab_.adds_bos) return nullptr;
    const std::string_view bos = *token(vocab_.bos);  // make_bpe has looked
    const auto part = [](const char* kind, std::string_view id, int type) {
      return Json{{kind, {{"id", id}, {"type_id", type}}}};
    };
    Json specials;
    specials[std::string(bos)] = {
        {"id", bos}, {"ids", Json::array({*vocab_.bos})}, {"tokens", Json::array({bos})}};
    return step("TemplateProcessing",
                {{"single", Json::array({part("SpecialToken", bos, 0), part("Sequence", "A", 0)})},
                 {"pair", Json::array({part("SpecialToken", bos, 0), part("Sequence", "A", 0),
                                       part("SpecialToken", bos, 1), part("Sequence", "B", 1)})},
                 {"special_tokens", specials}});
  }

  Json specials() const {
    Json json = Json::object();
    for (const auto& [name, text] :
         {std::pair("bos_token", token(vocab_.bos)), std::pair("eos_token", token(vocab_.eos)),
          std::pair("unk_token", unknown_), std::pair("pad_token", token(settings_.pad))})
      if (text) json[name] = *text;
    return json;
  }

  Json config() const {
    Json json{{"add_bos_token", vocab_.adds_bos},
              {"add_eos_token", false},
              {"clean_up_tokenization_spaces", false},
              {"model_max_length", settings_.context_length},
              {"tokenizer_class", "PreTrainedTokenizerFast"}};
    json.update(specials());
    if (!settings_.chat_template.empty()) json["chat_template"] = settings_.chat_template;
    return json;
  }

  const GgufVocab& vocab_;
  const TokenizerSettings& settings_;
  const bool scored_;
  Json root_ = Json::object();
  Json steps_ = Json::object();  // those that are not null
  std::string merges_text_;
  std::optional<std::string_view> unknown_;
};

}  // namespace

Result<TokenizerFiles> tokenizer_files(const GgufVocab& vocab, const TokenizerSettings& settings) {
  return Writer(vocab, settings).write();
}

}  // namespace paceline
