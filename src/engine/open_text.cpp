#include "engine/open_text.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/gguf_vocab.h"
#include "io/json_parse.h"
#include "text/bpe.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Error in_file(const Checkpoint& checkpoint, const Error& error) {
  return {error.code, checkpoint.path().string() + ": " + error.message};
}

Result<std::unique_ptr<Tokenizer>> tokenizer_of_gguf(const Metadata& metadata) {
  const auto lists = read_gguf_vocab(metadata);
  if (!lists) return lists.error();
  if (!*lists) return std::unique_ptr<Tokenizer>();
  return make_bpe((*lists)->vocab());
}

// A whole file, empty where there is none; refused above `limit` bytes.
Result<std::string> read_small_file(const fs::path& path, uint64_t limit) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::string();
  const uint64_t size = fs::file_size(path, failed);
  if (failed) return Error{ErrorCode::Io, path.string() + ": " + failed.message()};
  if (size > limit) {
    return Error{ErrorCode::TooLarge, path.string() + ": has " + std::to_string(size) +
                                          " bytes, at most " + std::to_string(limit) + " are read"};
  }
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return Error{ErrorCode::Io, path.string() + ": cannot be read"};
  }
  return text;
}

// chat_template of tokenizer_config.json: a text, or a list of {name, template}.
Result<std::string> template_in_config(const std::string& tokenizer_config) {
  if (tokenizer_config.empty()) return std::string();
  const Json json = parse_json<Json>(tokenizer_config);
  if (!json.is_object()) {
    return Error{ErrorCode::BadFormat, "tokenizer_config.json is not a JSON object"};
  }
  const auto found = json.find("chat_template");
  if (found == json.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) {
    for (const Json& entry : *found) {
      if (!entry.is_object()) continue;
      const auto name = entry.find("name");
      const auto text = entry.find("template");
      if (name != entry.end() && *name == "default" && text != entry.end() && text->is_string()) {
        return text->get<std::string>();
      }
    }
  }
  return Error{ErrorCode::BadFormat,
               "chat_template of tokenizer_config.json should be a text, or a list with one named "
               "'default'"};
}

Result<std::string> template_source(const Checkpoint& checkpoint) {
  if (const Metadata* metadata = checkpoint.metadata(); metadata != nullptr) {
    return std::string(metadata->text("tokenizer.chat_template").value_or(std::string_view()));
  }
  if (!checkpoint.chat_template_jinja().empty()) return checkpoint.chat_template_jinja();
  return template_in_config(checkpoint.tokenizer_config_json());
}

Result<TextOnly> open_json_text(const fs::path& path, bool is_folder) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const fs::path file = is_folder ? path / "tokenizer.json" : path;
  std::string texts[3];
  const std::pair<fs::path, uint64_t> files[] = {
      {file, 256 * kMiB},
      {file.parent_path() / "tokenizer_config.json", 64 * kMiB},
      {file.parent_path() / "chat_template.jinja", 16 * kMiB}};
  for (size_t i = 0; i < 3; ++i) {
    auto text = read_small_file(files[i].first, files[i].second);
    if (!text) return text.error();
    texts[i] = *std::move(text);
  }
  const auto& [json, config, jinja] = texts;
  if (json.empty()) {
    return Error{ErrorCode::NotFound,
                 path.string() + (is_folder ? ": no tokenizer.json in this folder"
                                            : ": no such file, or an empty one")};
  }
  const auto in_folder = [&](const Error& error) {
    return Error{error.code, fs::path(file).remove_filename().string() + error.message};
  };
  auto tokenizer = make_bpe(json, config);
  if (!tokenizer) return in_folder(tokenizer.error());
  auto source = jinja.empty() ? template_in_config(config) : Result<std::string>(jinja);
  if (!source) return in_folder(source.error());
  return TextOnly{*std::move(tokenizer), *std::move(source)};
}

Result<TextOnly> open_gguf_text(const fs::path& path) {
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint) return checkpoint.error();
  auto tokenizer = open_tokenizer(*checkpoint);
  if (!tokenizer) return tokenizer.error();
  if (*tokenizer == nullptr) {
    return Error{ErrorCode::Unsupported, path.string() + ": it has no tokenizer"};
  }
  auto source = template_source(*checkpoint);
  if (!source) return in_file(*checkpoint, source.error());
  return TextOnly{*std::move(tokenizer), *std::move(source)};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const Checkpoint& checkpoint) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = std::unique_ptr<Tokenizer>();
  if (const Metadata* metadata = checkpoint.metadata(); metadata != nullptr) {
    tokenizer = tokenizer_of_gguf(*metadata);
  } else if (!checkpoint.tokenizer_json().empty()) {
    tokenizer = make_bpe(checkpoint.tokenizer_json(), checkpoint.tokenizer_config_json());
  }
  if (!tokenizer) return in_file(checkpoint, tokenizer.error());
  return tokenizer;
}

Result<std::optional<ChatTemplate>> open_chat_template(const Checkpoint& checkpoint,
                                                       const Tokenizer& tokenizer) {
  const auto source = template_source(checkpoint);
  if (!source) return in_file(checkpoint, source.error());
  auto parsed = parse_chat_template(*source, tokenizer);
  if (!parsed) return in_file(checkpoint, parsed.error());
  return parsed;
}

Result<TextOnly> open_text(const fs::path& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  return is_folder || path.extension() == ".json" ? open_json_text(path, is_folder)
                                                  : open_gguf_text(path);
}

Result<std::optional<ChatTemplate>> parse_chat_template(std::string_view source,
                                                        const Tokenizer& tokenizer) {
  if (source.empty()) return std::optional<ChatTemplate>();
  const auto bos = tokenizer.bos();
  const auto end_ids = tokenizer.end_ids();
  auto parsed = ChatTemplate::parse(
      source, bos ? std::string(tokenizer.bytes(*bos)) : std::string(),
      end_ids.empty() ? std::string() : std::string(tokenizer.bytes(end_ids.front())));
  if (!parsed) return parsed.error();
  return std::optional<ChatTemplate>(std::move(*parsed));
}

}  // namespace paceline
