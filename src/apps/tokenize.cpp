// paceline tokenize: text to token ids and back.
#include <fmt/core.h>

#include <cstdio>
#include <sstream>

#include "apps/commands.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/text_file.h"
#include "apps/values.h"
#include "base/version.h"
#include "engine/open_text.h"

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

// A line of --lines the other way: a JSON text to ids, a list of ids to text.
Result<Json> convert_line(const Tokenizer& tokenizer, const std::string& line, bool plain) {
  const Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  std::vector<TokenId> ids;
  if (value.is_string()) {
    tokenizer.encode(value.get<std::string>(), !plain, ids);
    return Json(ids);
  }
  bool good = value.is_array();
  for (const Json& entry : value) {
    good = good && entry.is_number_integer() && entry >= 0 && entry < tokenizer.vocab_size();
    if (!good) break;
    ids.push_back(entry.get<TokenId>());
  }
  if (!good) return Error{ErrorCode::BadUsage, "no JSON text, and no list of ids"};
  auto text = text_of(tokenizer, ids, plain);
  if (!text) return text.error();
  return Json(*std::move(text));
}

Result<std::string> convert_lines(const Tokenizer& tokenizer, const std::string& lines,
                                  bool plain) {
  std::istringstream in(lines);
  std::string out;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto converted = convert_line(tokenizer, line, plain);
    if (!converted) {
      return Error{converted.error().code,
                   fmt::format("--lines, line {}: {}", number, converted.error().message)};
    }
    out += converted->dump() + "\n";
  }
  return out;
}

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
             "many at once: a JSON text, or a list of ids, a line; each comes out the other way");
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
  const auto tokenizer = open_tokenizer(std::filesystem::path(model.model));
  if (!tokenizer) return fail("tokenize", tokenizer.error());
  if (lines_file) {
    const auto converted = convert_lines(**tokenizer, lines, plain);
    if (!converted) return fail("tokenize", converted.error());
    std::fwrite(converted->data(), 1, converted->size(), stdout);
    return kExitSuccess;
  }

  const bool to_text = ids.has_value();
  if (to_text) {
    auto decoded = text_of(**tokenizer, *ids, plain);
    if (!decoded) return fail("tokenize", decoded.error());
    text = *std::move(decoded);
  } else {
    ids.emplace();
    (*tokenizer)->encode(*text, !plain, *ids);
  }
  if (!json.is_stdout()) {
    const std::string shown = to_text ? *text : join_ids(*ids);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fputc('\n', stdout);
  }
  const Json report = {{"command", "tokenize"},
                       {"version", version()},
                       {"commit", commit()},
                       {"model", model.model},
                       {"ids", *ids},
                       {"text", *text},
                       {"tokenizer", (*tokenizer)->description()}};
  if (auto written = json.write(report); !written) return fail("tokenize", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
