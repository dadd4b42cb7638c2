// paceline tokenize: text to token ids and back.
#include <fmt/core.h>

#include <cstdio>
#include <sstream>

#include "apps/commands.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/report_head.h"
#include "apps/text_file.h"
#include "apps/values.h"
#include "engine/open_text.h"
#include "io/json_parse.h"

namespace paceline::apps {
namespace {

// The text of ids; special tokens in their written form, or left out.
Result<std::string> text_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                            bool plain) {
  for (const TokenId id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("the id {} is not in the vocabulary of {} tokens", id,
                               tokenizer.vocab_size())};
    }
  }
  return decode(tokenizer, ids, /*keep_specials=*/!plain);
}

// --lines: each line the other way.
class LineConverter {
 public:
  LineConverter(const TextOnly& model, bool plain) : model_(&model), plain_(plain) {}

  // All lines, one behind another; the error of the first that is bad names it.
  Result<std::string> convert(const std::string& lines) {
    std::istringstream in(lines);
    std::string out;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const auto converted = convert_line(parse_json<Json>(line));
      if (!converted) {
        return Error{converted.error().code,
                     fmt::format("--lines, line {}: {}", number, converted.error().message)};
      }
      out += converted->dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    return out;
  }

 private:
  Result<Json> convert_line(const Json& value) {
    if (value.is_object()) return convert_chat(value);
    std::vector<TokenId> ids;
    if (value.is_string()) {
      model_->tokenizer->encode(value.get<std::string>(), !plain_, ids);
      return Json(ids);
    }
    bool good = value.is_array();
    for (const Json& entry : value) {
      good = good && entry.is_number_integer() && entry >= 0 &&
             entry < model_->tokenizer->vocab_size();
      if (!good) break;
      ids.push_back(entry.get<TokenId>());
    }
    if (!good) return Error{ErrorCode::BadUsage, "no text, no list of ids and no messages"};
    auto text = text_of(*model_->tokenizer, ids, plain_);
    if (!text) return text.error();
    return Json(*std::move(text));
  }

  // {"messages": [...], "add_generation_prompt": ...} to {"ids", "text"}, or {"error"} where the
  // template refuses the conversation.
  Result<Json> convert_chat(const Json& value) {
    if (!chat_) {
      auto parsed = parse_chat_template(model_->template_source, *model_->tokenizer);
      if (!parsed) return parsed.error();
      if (!*parsed) return Error{ErrorCode::Unsupported, "the model has no chat template"};
      chat_ = *std::move(parsed);
    }
    const auto list = value.find("messages");
    bool good = list != value.end() && list->is_array();
    std::vector<ChatMessage> messages;
    for (size_t i = 0; good && i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      good = entry.is_object() && entry.size() == 2 && entry.contains("role") &&
             entry["role"].is_string() && entry.contains("content") && entry["content"].is_string();
      if (good) messages.push_back({entry["role"], entry["content"]});
    }
    const auto wanted = value.find("add_generation_prompt");
    good = good && (wanted == value.end() || wanted->is_boolean());
    if (!good) {
      return Error{ErrorCode::BadUsage,
                   "messages wants a list of {role, content}, add_generation_prompt true or false"};
    }
    const bool prompt = wanted == value.end() || wanted->get<bool>();
    const auto text = chat_->render(messages, prompt);
    if (!text) return Json{{"error", text.error().message}};
    const auto ids = chat_->encode(messages, prompt, *model_->tokenizer);
    if (!ids) return Json{{"error", ids.error().message}};
    return Json{{"ids", *ids}, {"text", *text}};
  }

  const TextOnly* model_;
  bool plain_;
  std::optional<ChatTemplate> chat_;
};

}  // namespace

int tokenize(Args args) {
  ModelFlags model;
  JsonFile json;
  std::optional<std::string> text;
  std::optional<std::string> text_file;
  std::optional<std::vector<TokenId>> ids;
  std::optional<std::string> lines_file;
  bool plain = false;
  Flags flags("tokenize", "Text to token ids, without BOS, or token ids to text.",
              "paceline tokenize model.gguf --text \"Hello, world\"");
  model.add(flags);  // no weights are read: MODEL may be a tokenizer.json too
  flags.group("Input");
  flags.text("--text", "TEXT", text, "text to tokenize");
  flags.text("--text-file", "FILE", text_file, "the bytes of a file; - reads standard input");
  flags.value(
      "--ids", "1,2,3",
      [&](std::string_view given) -> Result<void> {
        auto list = parse_ids(given);
        if (!list) return list.error();
        ids = *std::move(list);
        return {};
      },
      "token ids to turn into text");
  flags.text("--lines", "FILE", lines_file,
             "many at once, JSON a line: a text gives ids, a list of ids gives text, and "
             "{\"messages\": [{\"role\", \"content\"} ...], \"add_generation_prompt\"} gives the "
             "ids and the "
             "text of the chat template");
  flags.flag("--plain", plain,
             "read special tokens as plain text; with --ids, leave special tokens out");
  flags.group("Output");
  json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("tokenize", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  const int given = (text ? 1 : 0) + (text_file ? 1 : 0) + (ids ? 1 : 0) + (lines_file ? 1 : 0);
  if (given != 1) {
    return fail("tokenize",
                {ErrorCode::BadUsage, fmt::format("give one of --text, --text-file, --ids and "
                                                  "--lines{}",
                                                  given > 1 ? ", not several" : "")});
  }
  if (lines_file && json.wanted()) {
    return fail("tokenize", {ErrorCode::BadUsage, "--lines writes JSON lines; leave --json away"});
  }
  if (auto ok = json.check(); !ok) return fail("tokenize", ok.error());
  if (text_file) {
    auto read = read_text("--text-file", *text_file);
    if (!read) return fail("tokenize", read.error());
    text = *std::move(read);
  }
  std::string lines;
  if (lines_file) {
    auto read = read_text("--lines", *lines_file);
    if (!read) return fail("tokenize", read.error());
    lines = *std::move(read);
  }
  const auto opened = open_text(model.model);
  if (!opened) return fail("tokenize", opened.error());
  if (lines_file) {
    const auto converted = LineConverter(*opened, plain).convert(lines);
    if (!converted) return fail("tokenize", converted.error());
    std::fwrite(converted->data(), 1, converted->size(), stdout);
    return kExitSuccess;
  }
  const Tokenizer& tokenizer = *opened->tokenizer;

  const bool to_text = ids.has_value();
  if (to_text) {
    auto decoded = text_of(tokenizer, *ids, plain);
    if (!decoded) return fail("tokenize", decoded.error());
    text = *std::move(decoded);
  } else {
    ids.emplace();
    tokenizer.encode(*text, !plain, *ids);
  }
  if (!json.is_stdout()) {
    const std::string shown = to_text ? *text : join_ids(*ids);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fputc('\n', stdout);
  }
  if (!json.wanted()) return kExitSuccess;
  Json report = report_head("tokenize");
  report["model"] = model.model;
  report["model_sha256"] = sha256_of_model(model.model);
  report["ids"] = *ids;
  report["text"] = *text;
  report["tokenizer"] = tokenizer.description();
  if (auto written = json.write(report); !written) return fail("tokenize", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
