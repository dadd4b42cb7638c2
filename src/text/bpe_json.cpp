// Byte-level BPE from tokenizer.json, the format of the tokenizers library.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "text/bpe.h"
#include "text/bpe_tokenizer.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace paceline {

namespace {

using Json = nlohmann::json;

Error bad(std::string message) {
  return {ErrorCode::BadFormat, "tokenizer.json: " + std::move(message)};
}
Error unsupported(std::string message) {
  return {ErrorCode::Unsupported, "tokenizer.json: " + std::move(message)};
}

// A member, or null where it is missing.
const Json& member(const Json& object, const char* key) {
  static const Json missing;
  if (!object.is_object()) return missing;
  const auto found = object.find(key);
  return found == object.end() ? missing : *found;
}
bool flag(const Json& object, const char* key, bool otherwise = false) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}
std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}
std::string type_of(const Json& step) { return text(member(step, "type")); }

class Reader {
 public:
  Result<BpeSpec> read(std::string_view source, std::string_view config) {
    size_t n_keys = 0;
    const Json root = parse(source, n_keys);
    if (root.is_discarded() || !root.is_object()) return bad("it is no JSON object");
    const Json& model = member(root, "model");
    for (auto step : {&Reader::check_model, &Reader::read_vocab, &Reader::read_merges}) {
      if (auto done = (this->*step)(model); !done) return done.error();
    }
    if (n_keys != member(model, "vocab").size()) return bad("model.vocab names a token twice");
    if (auto done = read_added(member(root, "added_tokens")); !done) return done.error();
    if (auto done = read_steps(root); !done) return done.error();
    if (auto done = read_post_processor(member(root, "post_processor")); !done) return done.error();
    if (auto done = read_config(config); !done) return done.error();
    if (spec_.adds_bos && !spec_.bos)
      return Error{ErrorCode::BadFormat,
                   "tokenizer_config.json: add_bos_token is true, but there is no bos_token"};
    return std::move(spec_);
  }

 private:
  // Parses, and counts the keys of model.vocab as they are written: the parsed object keeps only
  // one of two equal ones.
  static Json parse(std::string_view source, size_t& n_keys) {
    std::string outer[2];
    const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event != Json::parse_event_t::key) return true;
      if (depth == 1 || depth == 2) outer[depth - 1] = parsed.get<std::string>();
      if (depth == 3 && outer[0] == "model" && outer[1] == "vocab") ++n_keys;
      return true;
    };
    return Json::parse(source.begin(), source.end(), callback, /*allow_exceptions=*/false);
  }

  Result<void> check_model(const Json& model) {
    if (text(member(model, "type")) != "BPE")
      return unsupported(fmt::format("model.type is \"{}\"; only BPE is known here",
                                     shown(text(member(model, "type")))));
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text(member(model, key)).empty())
        return unsupported(fmt::format("model.{} is not known here", key));
    const Json& dropout = member(model, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0)
      return unsupported("model.dropout would make ids random");
    if (flag(model, "byte_fallback"))
      return unsupported("model.byte_fallback is not known for byte-level vocabularies");
    spec_.takes_whole_pieces = flag(model, "ignore_merges");
    spec_.fuse_unknown = flag(model, "fuse_unk");
    return {};
  }

  Result<void> place(TokenId id, BpeToken token) {
    if (spec_.tokens.size() <= static_cast<size_t>(id))
      spec_.tokens.resize(static_cast<size_t>(id) + 1);
    BpeToken& slot = spec_.tokens[static_cast<size_t>(id)];
    if (slot.kind != TokenKind::Unused)
      return bad(fmt::format("the id {} stands for two tokens, \"{}\" and \"{}\"", id,
                             shown(slot.bytes), shown(token.bytes)));
    slot = std::move(token);
    return {};
  }
  // Ids may have holes, but not so many that a small file asks for a large table.
  Result<TokenId> id_of(const Json& value, std::string_view where) const {
    if (!value.is_number_integer()) return bad(fmt::format("{} has no integer id", where));
    const auto id = value.get<int64_t>();
    if (id < 0 || id >= most_ids_)
      return bad(
          fmt::format("{} has the id {}, but only {} tokens are listed", where, id, n_listed_));
    return static_cast<TokenId>(id);
  }

  Result<void> read_vocab(const Json& model) {
    const Json& vocab = member(model, "vocab");
    if (!vocab.is_object() || vocab.empty()) return bad("model.vocab is missing or empty");
    n_listed_ = vocab.size();
    most_ids_ = std::min(static_cast<int64_t>(vocab.size()) * 2 + 4096, kMostIds);
    by_text_.reserve(vocab.size());
    spec_.tokens.resize(vocab.size());
    for (const auto& [written, value] : vocab.items()) {
      const auto id = id_of(value, "model.vocab[\"" + shown(written) + "\"]");
      if (!id) return id.error();
      by_text_.emplace(written, *id);
    }
    return {};
  }

  // Tokens that are neither in the byte alphabet nor added have no way into a text.
  Result<void> place_vocab() {
    for (const auto& [written, id] : by_text_) {
      if (added_ids_.contains(id)) continue;
      auto bytes = from_byte_alphabet(written);
      if (!bytes || bytes->empty())
        return bad(
            fmt::format("model.vocab has \"{}\", which is neither text in the byte alphabet "
                        "nor among added_tokens",
                        shown(written)));
      auto done = place(id, {std::move(*bytes), TokenKind::Normal});
      if (!done) return done;
    }
    return {};
  }

  Result<void> read_merges(const Json& model) {
    const Json& merges = member(model, "merges");
    if (!merges.is_array()) return bad("model.merges is missing");
    spec_.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      std::string_view left;
      std::string_view right;
      const Json& entry = merges[i];
      if (entry.is_string()) {
        const std::string_view line = entry.get_ref<const std::string&>();
        const size_t blank = line.find(' ');
        if (blank != std::string_view::npos && line.find(' ', blank + 1) == line.npos) {
          left = line.substr(0, blank);
          right = line.substr(blank + 1);
        }
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                 entry[1].is_string()) {
        left = entry[0].get_ref<const std::string&>();
        right = entry[1].get_ref<const std::string&>();
      }
      if (left.empty() || right.empty())
        return bad(fmt::format("model.merges[{}] does not name two tokens", i));
      auto merge = find_merge(by_text_, left, right, i);
      if (!merge) return bad("model.merges: " + merge.error().message);
      spec_.merges.push_back(*merge);
    }
    return {};
  }

  Result<void> read_added(const Json& added) {
    if (!added.is_null() && !added.is_array()) return bad("added_tokens is no list");
    n_listed_ += added.size();
    most_ids_ = std::min(most_ids_ + static_cast<int64_t>(added.size()) * 2, kMostIds);
    for (const Json& entry : added) {
      const std::string content = text(member(entry, "content"));
      if (content.empty()) return bad("added_tokens has an entry without content");
      const std::string where = "added_tokens \"" + shown(content) + "\"";
      for (const char* key : {"lstrip", "rstrip", "single_word"})
        if (flag(entry, key))
          return unsupported(fmt::format("{} has {}, which is not known here", where, key));
      const auto id = id_of(member(entry, "id"), where);
      if (!id) return id.error();
      if (const auto known = by_text_.find(content);
          known != by_text_.end() && known->second != *id)
        return bad(
            fmt::format("{} has the id {}, but {} in model.vocab", where, *id, known->second));
      const bool special = flag(entry, "special");
      if (!added_ids_.insert(*id).second || !added_texts_.insert(content).second)
        return bad(fmt::format("{} is listed twice, or its id {} is", where, *id));
      auto done = place(*id, {content, special ? TokenKind::Special : TokenKind::Added,
                              flag(entry, "normalized", !special)});
      if (!done) return done;
    }
    if (auto done = place_vocab(); !done) return done;
    return {};
  }

  // --- the steps that a text goes through ---

  Result<void> read_steps(const Json& root) {
    if (const Json& normalizer = member(root, "normalizer"); !normalizer.is_null())
      return unsupported(
          fmt::format("the normalizer \"{}\" is not known here", shown(type_of(normalizer))));
    if (type_of(member(root, "decoder")) != "ByteLevel")
      return unsupported(fmt::format("the decoder \"{}\" is not known here; ByteLevel is",
                                     shown(type_of(member(root, "decoder")))));
    bool has_byte_level = false;
    if (auto done = read_pre_tokenizer(member(root, "pre_tokenizer"), 0, has_byte_level); !done)
      return done;
    if (!has_byte_level) return unsupported("its pre_tokenizer has no ByteLevel step");
    return {};
  }

  Result<void> read_pre_tokenizer(const Json& step, int depth, bool& has_byte_level) {
    const std::string type = type_of(step);
    if (has_byte_level)
      return unsupported(
          fmt::format("the pre_tokenizer \"{}\" behind ByteLevel is not known here", shown(type)));
    if (type == "Sequence" && depth < 4) {
      const Json& steps = member(step, "pretokenizers");
      if (!steps.is_array()) return bad("a pre_tokenizer Sequence has no list of pretokenizers");
      for (const Json& inner : steps) {
        auto done = read_pre_tokenizer(inner, depth + 1, has_byte_level);
        if (!done) return done;
      }
    } else if (type == "Digits") {
      if (!flag(step, "individual_digits"))
        return unsupported("the pre_tokenizer Digits without individual_digits is not known here");
      add_step(CutStep::Digits, "digits one by one");
    } else if (type == "Split") {
      return read_split(step);
    } else if (type == "ByteLevel") {
      has_byte_level = true;
      if (flag(step, "add_prefix_space", true)) add_step(CutStep::PrefixSpace, "prefix space");
      if (flag(step, "use_regex", true)) add_step(CutStep::Gpt2, "GPT-2 pattern");
    } else {
      return unsupported(
          fmt::format("the pre_tokenizer \"{}\" is not known here; known are "
                      "Sequence, Digits, Split and ByteLevel",
                      shown(type)));
    }
    return {};
  }

  Result<void> read_split(const Json& step) {
    if (text(member(step, "behavior")) != "Isolated" || flag(step, "invert"))
      return unsupported(fmt::format(
          "the pre_tokenizer Split with behavior \"{}\"{} is not known "
          "here; Isolated is",
          shown(text(member(step, "behavior"))), flag(step, "invert") ? ", inverted," : ""));
    const Json& pattern = member(member(step, "pattern"), "Regex");
    if (!pattern.is_string())
      return unsupported("the pre_tokenizer Split without a Regex pattern is not known here");
    const auto cut = cut_step_of_pattern(text(pattern));
    if (!cut) return unsupported("pre_tokenizer Split: " + cut.error().message);
    add_step(*cut, *cut == CutStep::Llama3  ? "Llama 3 pattern"
                   : *cut == CutStep::Qwen2 ? "Qwen2 pattern"
                                            : "GPT-2 pattern");
    return {};
  }

  void add_step(CutStep step, std::string_view name) {
    spec_.steps.push_back(step);
    if (!spec_.steps_name.empty()) spec_.steps_name += ", ";
    spec_.steps_name += name;
  }

  // What the library does behind the model: it may put a BOS in front.
  Result<void> read_post_processor(const Json& step) {
    const std::string type = type_of(step);
    if (step.is_null() || type == "ByteLevel") return {};  // ByteLevel moves offsets only
    if (type == "Sequence") {
      for (const Json& inner : member(step, "processors"))
        if (auto done = read_one_processor(inner); !done) return done;
      return {};
    }
    return read_one_processor(step);
  }
  Result<void> read_one_processor(const Json& step) {
    const std::string type = type_of(step);
    if (type == "ByteLevel") return {};
    if (type != "TemplateProcessing")
      return unsupported(fmt::format("the post_processor \"{}\" is not known here", shown(type)));
    const Json& parts = member(step, "single");
    if (!parts.is_array()) return bad("the post_processor TemplateProcessing has no \"single\"");
    bool before_text = true;
    for (const Json& part : parts) {
      if (!member(part, "Sequence").is_null()) {
        before_text = false;
        continue;
      }
      const std::string name = text(member(member(part, "SpecialToken"), "id"));
      const auto bos = special(name);
      if (!before_text || spec_.bos || !bos)
        return unsupported(
            fmt::format("the post_processor TemplateProcessing with \"{}\" is not "
                        "known here; one special token before the text is",
                        shown(name)));
      spec_.bos = bos;
      spec_.adds_bos = true;
    }
    return {};
  }

  // --- tokenizer_config.json ---

  std::optional<TokenId> special(const std::string& content) const {
    for (TokenId id : added_ids_)
      if (spec_.tokens[static_cast<size_t>(id)].bytes == content) return id;
    if (const auto found = by_text_.find(content); found != by_text_.end()) return found->second;
    return std::nullopt;
  }

  // A token's text as the file writes it: a string, or an object with its content.
  Result<std::optional<TokenId>> config_token(const Json& config, const char* key) const {
    const Json& value = member(config, key);
    if (value.is_null()) return std::optional<TokenId>();
    const std::string content = text(value.is_object() ? member(value, "content") : value);
    const auto id = special(content);
    if (!id)
      return Error{ErrorCode::BadFormat,
                   fmt::format("tokenizer_config.json: {} is \"{}\", which tokenizer.json does not "
                               "have",
                               key, shown(content))};
    return id;
  }

  Result<void> read_config(std::string_view source) {
    if (source.empty()) return {};
    const Json config = Json::parse(source.begin(), source.end(), nullptr, false);
    if (!config.is_object())
      return Error{ErrorCode::BadFormat, "tokenizer_config.json: it is no JSON object"};
    const auto bos = config_token(config, "bos_token");
    if (!bos) return bos.error();
    if (*bos) spec_.bos = *bos;
    spec_.adds_bos = flag(config, "add_bos_token", spec_.adds_bos);
    const auto eos = config_token(config, "eos_token");
    if (!eos) return eos.error();
    if (*eos) spec_.end_ids.push_back(**eos);
    return {};
  }

  BpeSpec spec_;
  // Views into the parsed file, which outlives the reading.
  std::unordered_map<std::string_view, TokenId> by_text_;
  std::set<TokenId> added_ids_;
  std::set<std::string> added_texts_;
  static constexpr int64_t kMostIds = INT32_MAX;
  int64_t most_ids_ = 0;  // ids lie below
  size_t n_listed_ = 0;   // entries of the vocabulary and of added_tokens
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_bpe(std::string_view tokenizer_json,
                                            std::string_view tokenizer_config) {
  auto spec = Reader().read(tokenizer_json, tokenizer_config);
  if (!spec) return spec.error();
  auto made = make_bpe(std::move(*spec));
  if (!made) return bad("model.merges: " + made.error().message);
  return made;
}

}  // namespace paceline
