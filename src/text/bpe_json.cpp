// BPE from tokenizer.json, the format of the tokenizers library.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "text/bpe.h"
#include "text/bpe_json_steps.h"
#include "text/bpe_tokenizer.h"
#include "text/byte_alphabet.h"
#include "text/json_scan.h"
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
std::string type_of(const Json& step) { return json_text(json_member(step, "type")); }

// The members of a JSON object as text. Of two with one name the last counts.
using Members = std::map<std::string, std::string_view, std::less<>>;
// The object at `scan`; a member `inside` that is an object is taken apart too, into its own list,
// so that the file is gone through once.
Members members_at(JsonScan& scan, std::string_view inside = {}, Members* of_inside = nullptr) {
  Members members;
  if (!scan.enter('{')) return members;
  while (scan.next('}')) {
    const std::string name(scan.key());
    if (of_inside != nullptr && name == inside && scan.is_object())
      *of_inside = members_at(scan);
    else
      members[name] = scan.value();
  }
  return members;
}

class Reader {
 public:
  Result<BpeSpec> read(std::string_view source, std::string_view config) {
    JsonScan scan(source);
    Members model;
    const Members root = members_at(scan, "model", &model);
    if (scan.failed() || !scan.at_end()) return bad("it is no JSON object");
    if (model.empty()) return bad("it has no object \"model\"");
    if (auto done = check_model(model); !done) return done.error();
    if (auto done = read_steps(root); !done) return done.error();
    JsonScan vocab(text_at(model, "vocab"));
    if (auto done = read_vocab(vocab); !done) return done.error();
    JsonScan merges(text_at(model, "merges"));
    if (auto done = read_merges(merges); !done) return done.error();
    const auto added = document(root, "added_tokens");
    if (!added) return added.error();
    if (auto done = read_added(*added); !done) return done.error();
    if (auto done = place_vocab(); !done) return done.error();
    if (auto done = read_unknown(model); !done) return done.error();
    const auto post_processor = document(root, "post_processor");
    if (!post_processor) return post_processor.error();
    if (auto done = read_post_processor(*post_processor); !done) return done.error();
    if (auto done = read_config(config); !done) return done.error();
    if (spec_.adds_bos && !spec_.bos)
      return Error{ErrorCode::BadFormat,
                   "tokenizer_config.json: add_bos_token is true, but there is no bos_token"};
    return std::move(spec_);
  }

 private:
  static std::string_view text_at(const Members& members, std::string_view name) {
    const auto found = members.find(name);
    return found == members.end() ? std::string_view() : found->second;
  }
  // A short member as a document, null where it is missing.
  static Result<Json> document(const Members& members, std::string_view name) {
    const std::string_view source = text_at(members, name);
    if (source.empty()) return Json();
    Json json = Json::parse(source.begin(), source.end(), nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return bad(fmt::format("{} is no JSON", name));
    return json;
  }

  Result<void> check_model(const Members& model) {
    Json settings = Json::object();  // all but the long lists
    for (const auto& [name, value] : model) {
      if (name == "vocab" || name == "merges") continue;
      auto setting = document(model, name);
      if (!setting) return setting.error();
      settings[name] = std::move(*setting);
    }
    if (json_text(json_member(settings, "type")) != "BPE")
      return unsupported(fmt::format("model.type is \"{}\"; only BPE is known here",
                                     shown(json_text(json_member(settings, "type")))));
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!json_text(json_member(settings, key)).empty())
        return unsupported(fmt::format("model.{} is not known here", key));
    const Json& dropout = json_member(settings, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0)
      return unsupported("model.dropout would make ids random");
    byte_fallback_ = json_flag(settings, "byte_fallback");
    spec_.takes_whole_pieces = json_flag(settings, "ignore_merges");
    spec_.fuse_unknown = json_flag(settings, "fuse_unk");
    return {};
  }

  Result<void> read_steps(const Members& root) {
    Json parts[3];
    const char* const names[] = {"normalizer", "pre_tokenizer", "decoder"};
    for (size_t i = 0; i < 3; ++i) {
      auto part = document(root, names[i]);
      if (!part) return part.error();
      parts[i] = std::move(*part);
    }
    auto steps = read_bpe_steps(parts[0], parts[1], parts[2]);
    if (!steps) return steps.error();
    steps_ = std::move(*steps);
    if (byte_fallback_ && steps_.byte_level)
      return unsupported("model.byte_fallback is not known for byte-level vocabularies");
    if (spec_.takes_whole_pieces && !steps_.byte_level)
      return unsupported("model.ignore_merges is known for byte-level vocabularies only");
    spec_.normalizer = steps_.normalizer;
    spec_.bar_spaces = steps_.bar_spaces;
    spec_.steps = steps_.cuts;
    spec_.spaces_off_front = steps_.spaces_off_front;
    spec_.description = steps_.byte_level ? "byte-level BPE"
                        : byte_fallback_  ? "BPE with byte fallback"
                                          : "BPE of characters";
    if (!steps_.description.empty()) spec_.description += ", " + steps_.description;
    return {};
  }

  TokenKind kind_of(TokenId id) const {
    return static_cast<size_t>(id) < spec_.tokens.size()
               ? spec_.tokens[static_cast<size_t>(id)].kind
               : TokenKind::Unused;
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
  Result<TokenId> id_of(std::optional<int64_t> id, std::string_view where) const {
    if (!id) return bad(fmt::format("{} has no integer id", where));
    if (*id < 0 || *id >= most_ids_)
      return bad(
          fmt::format("{} has the id {}, but only {} tokens are listed", where, *id, n_listed_));
    return static_cast<TokenId>(*id);
  }

  Result<void> read_vocab(JsonScan& scan) {
    struct Listed {
      std::string_view text;
      std::optional<int64_t> id;
    };
    std::vector<Listed> listed;
    if (scan.enter('{')) {
      while (scan.next('}')) {
        const std::string_view text = scan.key();
        listed.push_back({text, scan.integer()});
      }
    }
    if (scan.failed() || listed.empty()) return bad("model.vocab is missing or empty");
    n_listed_ = listed.size();
    most_ids_ = std::min(static_cast<int64_t>(listed.size()) * 2 + 4096, kMostIds);
    by_text_.reserve(listed.size());
    // What escapes became belongs to the scan; the index needs it for longer.
    scan.give_texts_to(texts_);
    for (const Listed& entry : listed) {
      if (!entry.id || *entry.id < 0 || *entry.id >= most_ids_)
        return id_of(entry.id, "model.vocab[\"" + shown(entry.text) + "\"]").error();
      if (!by_text_.insert(entry.text, static_cast<TokenId>(*entry.id)))
        return bad("model.vocab names a token twice");
    }
    return {};
  }

  // Tokens that are not added must be ways of writing a text.
  Result<void> place_vocab() {
    spec_.tokens.reserve(by_text_.size());
    std::array<TokenId, 256> byte_tokens;
    byte_tokens.fill(-1);
    for (const TokenIndex::Entry& entry : by_text_.entries()) {
      const std::string_view written = entry.text;
      const TokenKind kind = kind_of(entry.id);
      if (!steps_.byte_level) {
        const bool special = kind == TokenKind::Special;
        if (const auto code = only_character(written); code && !special)
          spec_.char_tokens.add(*code, entry.id);
        if (const auto byte = byte_of_token(written); byte && !special)
          byte_tokens[*byte] = entry.id;
      }
      if (kind == TokenKind::Added || kind == TokenKind::Special) continue;
      std::optional<std::string> bytes;
      if (steps_.byte_level)
        bytes = from_byte_alphabet(written);
      else if (is_valid_utf8(written))
        bytes = decoded_piece(written, steps_.decodes_bytes);
      if (!bytes || (bytes->empty() && steps_.byte_level))
        return bad(
            fmt::format("model.vocab has \"{}\", which is neither text in the {} nor among "
                        "added_tokens",
                        shown(written), steps_.byte_level ? "byte alphabet" : "UTF-8"));
      auto done = place(entry.id, {std::move(*bytes), TokenKind::Normal});
      if (!done) return done;
    }
    if (!byte_fallback_) return {};
    const auto missing = std::find(byte_tokens.begin(), byte_tokens.end(), -1);
    if (missing != byte_tokens.end())
      return bad(fmt::format("model.byte_fallback is true, but model.vocab has no \"<0x{:02X}>\"",
                             missing - byte_tokens.begin()));
    spec_.byte_fallback = byte_tokens;
    return {};
  }

  Result<void> read_merges(JsonScan& scan) {
    bool well_formed = scan.enter('[');
    size_t i = 0;
    for (; well_formed && scan.next(']'); ++i) {
      std::string_view left;
      std::string_view right;
      if (scan.is_text()) {
        const std::string_view line = scan.text();
        const size_t blank = line.find(' ');
        if (blank != line.npos && line.find(' ', blank + 1) == line.npos) {
          left = line.substr(0, blank);
          right = line.substr(blank + 1);
        }
      } else if (scan.is_list()) {
        scan.enter('[');
        if (scan.next(']') && scan.is_text()) left = scan.text();
        if (!left.empty() && scan.next(']') && scan.is_text()) right = scan.text();
        if (!right.empty() && scan.next(']')) right = {};  // a third entry
      }
      if (scan.failed()) break;
      if (left.empty() || right.empty())
        return bad(fmt::format("model.merges[{}] does not name two tokens", i));
      auto merge = find_merge(by_text_, left, right, i);
      if (!merge) return bad("model.merges: " + merge.error().message);
      spec_.merges.push_back(*merge);
    }
    well_formed = well_formed && !scan.failed() && scan.at_end();
    if (!well_formed || i >= std::numeric_limits<uint32_t>::max())
      return bad("model.merges is missing, or no list");
    return {};
  }

  Result<void> read_added(const Json& added) {
    if (!added.is_null() && !added.is_array()) return bad("added_tokens is no list");
    n_listed_ += added.size();
    most_ids_ = std::min(most_ids_ + static_cast<int64_t>(added.size()) * 2, kMostIds);
    for (const Json& entry : added) {
      const std::string content = json_text(json_member(entry, "content"));
      if (content.empty()) return bad("added_tokens has an entry without content");
      const std::string where = "added_tokens \"" + shown(content) + "\"";
      const Json& written_id = json_member(entry, "id");
      const auto id =
          id_of(written_id.is_number_integer() ? std::optional<int64_t>(written_id.get<int64_t>())
                                               : std::nullopt,
                where);
      if (!id) return id.error();
      if (const TokenId known = by_text_.find(content); known >= 0 && known != *id)
        return bad(fmt::format("{} has the id {}, but {} in model.vocab", where, *id, known));
      const bool special = json_flag(entry, "special");
      if (!added_ids_.insert(*id).second || !added_by_content_.emplace(content, *id).second)
        return bad(fmt::format("{} is listed twice, or its id {} is", where, *id));
      if (auto done = place_added(entry, content, *id, special); !done) return done;
    }
    return {};
  }

  Result<void> place_added(const Json& entry, const std::string& content, TokenId id,
                           bool special) {
    AddedToken token{content,
                     id,
                     special,
                     json_flag(entry, "lstrip"),
                     json_flag(entry, "rstrip"),
                     json_flag(entry, "single_word")};
    // The reference decodes what is normalized to its normalized form.
    std::string bytes = content;
    const bool normalized = json_flag(entry, "normalized", !special);
    if (normalized) {
      std::string room;
      token.text = spec_.normalizer.apply(content, room);
      if (token.text.empty() || !normalized_texts_.insert(token.text).second)
        return bad(fmt::format(
            "added_tokens \"{}\" is normalized to nothing, or to what another is", shown(content)));
      if (!special) bytes = token.text;
    }
    if (!special && !steps_.byte_level) bytes = decoded_piece(bytes, steps_.decodes_bytes);
    (normalized ? spec_.added_normalized : spec_.added).push_back(std::move(token));
    return place(id, {std::move(bytes), special ? TokenKind::Special : TokenKind::Added});
  }

  Result<void> read_unknown(const Members& model) {
    const auto unknown = document(model, "unk_token");
    if (!unknown) return unknown.error();
    const std::string content = json_text(*unknown);
    if (content.empty()) return {};
    const auto id = special(content);
    if (!id) return bad(fmt::format("model.unk_token \"{}\" is no token", shown(content)));
    spec_.unknown = *id;
    return {};
  }

  // What the library does behind the model: it may put a BOS in front.
  Result<void> read_post_processor(const Json& step) {
    const std::string type = type_of(step);
    if (step.is_null() || type == "ByteLevel") return {};  // ByteLevel moves offsets only
    if (type == "Sequence") {
      for (const Json& inner : json_member(step, "processors"))
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
    const Json& parts = json_member(step, "single");
    if (!parts.is_array()) return bad("the post_processor TemplateProcessing has no \"single\"");
    bool before_text = true;
    for (const Json& part : parts) {
      if (!json_member(part, "Sequence").is_null()) {
        before_text = false;
        continue;
      }
      const std::string name = json_text(json_member(json_member(part, "SpecialToken"), "id"));
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
    if (const TokenId id = by_text_.find(content); id >= 0) return id;
    const auto found = added_by_content_.find(content);
    if (found == added_by_content_.end()) return std::nullopt;
    return found->second;
  }

  // A token's text as the file writes it: a string, or an object with its content.
  Result<std::optional<TokenId>> config_token(const Members& config, const char* key) const {
    const auto value = config_value(config, key);
    if (!value) return value.error();
    if (value->is_null()) return std::optional<TokenId>();
    const std::string content =
        json_text(value->is_object() ? json_member(*value, "content") : *value);
    const auto id = special(content);
    if (!id)
      return bad_config(
          fmt::format("{} is \"{}\", which tokenizer.json does not have", key, shown(content)));
    return id;
  }
  static Error bad_config(std::string message) {
    return {ErrorCode::BadFormat, "tokenizer_config.json: " + std::move(message)};
  }
  static Result<Json> config_value(const Members& config, const char* key) {
    const std::string_view source = text_at(config, key);
    if (source.empty()) return Json();
    Json json = Json::parse(source.begin(), source.end(), nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return bad_config(fmt::format("{} is no JSON", key));
    return json;
  }

  Result<void> read_config(std::string_view source) {
    if (source.empty()) return {};
    JsonScan scan(source);
    const Members config = members_at(scan);
    if (scan.failed() || !scan.at_end()) return bad_config("it is no JSON object");
    const auto bos = config_token(config, "bos_token");
    if (!bos) return bos.error();
    if (*bos) spec_.bos = *bos;
    const auto adds_bos = config_value(config, "add_bos_token");
    if (!adds_bos) return adds_bos.error();
    if (adds_bos->is_boolean()) spec_.adds_bos = adds_bos->get<bool>();
    const auto eos = config_token(config, "eos_token");
    if (!eos) return eos.error();
    if (*eos) spec_.end_ids.push_back(**eos);
    return {};
  }

  BpeSpec spec_;
  BpeSteps steps_;
  bool byte_fallback_ = false;
  // The texts are views into the file, which outlives the reading, or into texts_.
  TokenIndex by_text_;
  std::deque<std::string> texts_;
  std::set<TokenId> added_ids_;
  std::map<std::string, TokenId> added_by_content_;
  std::set<std::string> normalized_texts_;
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
