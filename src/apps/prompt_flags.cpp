#include "apps/prompt_flags.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/text_file.h"
#include "apps/values.h"
#include "base/sha256.h"
#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

using nlohmann::json;

// "prompts.jsonl line 3: wants ..., not ..."
Error bad_line(const PromptSource& source, const std::string& what) {
  return {ErrorCode::BadFormat, source.where + ": " + what};
}

Result<void> read_label(const json& object, const char* key, PromptSource& source,
                        std::string& field) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null()) return {};
  if (value->is_string()) {
    field = value->get<std::string>();
  } else if (value->is_number_integer()) {
    field = value->dump();
  } else {
    return bad_line(source, fmt::format("{} wants a text or a whole number", key));
  }
  return {};
}

Result<void> read_messages(const json& list, PromptSource& source) {
  if (!list.is_array() || list.empty()) {
    return bad_line(source, R"(messages wants a list of {"role": ..., "content": ...})");
  }
  for (const json& message : list) {
    const bool is_object = message.is_object();
    const auto role = is_object ? message.find("role") : message.end();
    const auto content = is_object ? message.find("content") : message.end();
    if (!is_object || role == message.end() || content == message.end() || !role->is_string() ||
        !content->is_string()) {
      return bad_line(source, "each message wants a role and a content, both texts");
    }
    source.messages.push_back({role->get<std::string>(), content->get<std::string>()});
  }
  return {};
}

Result<void> read_json_line(std::string_view line, PromptSource& source) {
  const json object = parse_json<json>(line);
  if (object.is_discarded()) {
    return bad_line(source, fmt::format("wants a JSON object, not {}", quoted_name(line)));
  }
  const auto prompt = object.is_object() ? object.find("prompt") : object.end();
  const auto messages = object.is_object() ? object.find("messages") : object.end();
  const bool has_prompt = object.is_object() && prompt != object.end();
  const bool has_messages = object.is_object() && messages != object.end();
  if (has_prompt == has_messages) {
    return bad_line(source, fmt::format("wants an object with prompt or messages, {}",
                                        has_prompt ? "not both" : "and has neither"));
  }
  if (has_prompt) {
    if (!prompt->is_string()) return bad_line(source, "prompt wants a text");
    source.text = prompt->get<std::string>();
    if (source.text.empty()) return bad_line(source, "the prompt is empty");
  } else if (auto read = read_messages(*messages, source); !read) {
    return read;
  }
  if (auto read = read_label(object, "id", source, source.id); !read) return read;
  return read_label(object, "category", source, source.category);
}

bool is_prompt_object(std::string_view line) {
  const json object = parse_json<json>(line);
  return object.is_object() && (object.contains("prompt") || object.contains("messages"));
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Standard input has no name to go by: it is JSON lines when its first line is.
bool looks_like_json_lines(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (!is_blank(line)) return is_prompt_object(line);
    begin = end + 1;
  }
  return false;
}

}  // namespace

Result<std::vector<PromptSource>> parse_prompts(std::string_view text, std::string_view name,
                                                bool json_lines) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<PromptSource> sources;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    ++line_number;
    if (is_blank(line)) continue;
    PromptSource source;
    source.id = fmt::format("{}", line_number);
    source.where = fmt::format("{} line {}", name, line_number);
    if (json_lines) {
      if (auto read = read_json_line(line, source); !read) return read.error();
    } else {
      source.text = line;
    }
    sources.push_back(std::move(source));
  }
  if (sources.empty()) {
    return Error{ErrorCode::BadFormat, fmt::format("{} holds no prompt", name)};
  }
  return sources;
}

void PromptFlags::add(Flags& flags) {
  flags.group("Prompts");
  flags.text("--prompt", "TEXT", prompt, "one prompt");
  flags.text("--prompts", "FILE", file,
             ".jsonl with prompt or messages, id, category; any other file one a line; - reads "
             "standard input");
  flags.value(
      "--prompt-ids", "1,2,3",
      [this](std::string_view given) -> Result<void> {
        auto list = parse_ids(given);
        if (!list) return list.error();
        ids = *std::move(list);
        return {};
      },
      "one prompt as token ids; nothing is added to them");
  flags.flag("--raw", raw, "continue the text as it is, without the chat template");
  flags.text("--system", "TEXT", system, "system message of prompts that bring none");
}

std::vector<std::string> PromptFlags::files() const {
  if (!file || *file == "-") return {};
  return {*file};
}

Result<std::vector<PromptSource>> PromptFlags::read(std::string* sha256) const {
  const int given = (prompt ? 1 : 0) + (file ? 1 : 0) + (ids ? 1 : 0);
  if (given != 1) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("give one of --prompt, --prompts and --prompt-ids{}",
                             given > 1 ? ", not several" : "")};
  }
  if (system && (raw || ids)) {
    return Error{ErrorCode::BadUsage, fmt::format("--system goes with the chat template, not with "
                                                  "{}",
                                                  raw ? "--raw" : "--prompt-ids")};
  }
  if (prompt && prompt->empty()) return Error{ErrorCode::BadUsage, "--prompt is empty"};
  const auto hash = [sha256](std::string_view text) {
    if (sha256 != nullptr) *sha256 = paceline::sha256(std::as_bytes(std::span(text)));
  };
  if (!file) {
    hash(prompt.value_or(""));
    PromptSource source;
    source.id = "1";
    source.where = ids ? "--prompt-ids" : "--prompt";
    if (ids) source.ids = *ids;
    if (prompt) source.text = *prompt;
    return std::vector<PromptSource>{std::move(source)};
  }
  const auto text = read_text("--prompts", *file);
  if (!text) return text.error();
  hash(*text);
  const bool json_lines =
      *file == "-" ? looks_like_json_lines(*text) : std::string_view(*file).ends_with(".jsonl");
  return parse_prompts(*text, *file == "-" ? "standard input" : *file, json_lines);
}

Result<std::vector<Prompt>> PromptFlags::encode(const std::vector<PromptSource>& sources,
                                                const Engine& engine) const {
  const bool with_template = !raw && engine.chat_template() != nullptr;
  if (system && !with_template) {
    return Error{ErrorCode::Unsupported,
                 raw ? "--system goes with the chat template, not with --raw"
                     : "--system needs a chat template, and the model has none"};
  }
  std::vector<Prompt> prompts;
  for (const PromptSource& source : sources) {
    Prompt prompt_out{source.id, source.category, source.ids};
    if (source.ids.empty()) {
      if (engine.tokenizer() == nullptr) {
        return Error{ErrorCode::Unsupported,
                     source.where + ": the model has no tokenizer; use --prompt-ids"};
      }
      if (!source.messages.empty() && !with_template) {
        return Error{ErrorCode::Unsupported,
                     source.where + (raw ? ": messages need the chat template; drop --raw"
                                         : ": messages need a chat template; the model has none")};
      }
      std::vector<ChatMessage> messages = source.messages;
      if (messages.empty()) messages.push_back({"user", source.text});
      if (system && messages[0].role != "system") {
        messages.insert(messages.begin(), {"system", *system});
      }
      auto ids_out = with_template ? engine.encode_chat(messages) : engine.encode_text(source.text);
      if (!ids_out)
        return Error{ids_out.error().code, source.where + ": " + ids_out.error().message};
      prompt_out.ids = *std::move(ids_out);
    }
    const int vocab_size = engine.model().info().vocab_size;
    for (const TokenId id : prompt_out.ids) {
      if (id < 0 || id >= vocab_size) {
        return Error{ErrorCode::BadUsage,
                     fmt::format("{}: token id {} is not in the vocabulary of {}", source.where, id,
                                 vocab_size)};
      }
    }
    if (prompt_out.ids.empty()) {
      return Error{ErrorCode::BadUsage, source.where + ": the prompt has no tokens"};
    }
    if (static_cast<int64_t>(prompt_out.ids.size()) >= engine.context()) {
      return Error{ErrorCode::TooLarge,
                   fmt::format("{}: the prompt has {} tokens and the context holds {}; shorten it "
                               "or raise --context",
                               source.where, prompt_out.ids.size(), engine.context())};
    }
    prompts.push_back(std::move(prompt_out));
  }
  return prompts;
}

}  // namespace paceline::apps
