// paceline tokenize: text to token ids and back.
#include <fmt/core.h>

#include <cstdio>

#include "apps/commands.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/text_file.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

// The ids' bytes one behind another; special tokens in their written form, or left out.
Result<std::string> text_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                            bool plain) {
  std::string text;
  for (const TokenId id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) {
      return Error{ErrorCode::BadUsage, fmt::format("--ids: {} is not in the vocabulary of {}", id,
                                                    tokenizer.vocab_size())};
    }
    if (!plain || !tokenizer.is_special(id)) text += tokenizer.bytes(id);
  }
  return text;
}

}  // namespace

int tokenize(Args args) {
  ModelFlags model;
  JsonFile json;
  std::optional<std::string> text;
  std::optional<std::string> text_file;
  std::optional<std::vector<TokenId>> ids;
  bool plain = false;
  Flags flags("tokenize", "Text to token ids, without BOS, or token ids to text.",
              "paceline tokenize model.gguf --text \"Hello, world\"");
  model.add(flags);
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
  flags.flag("--plain", plain,
             "read special tokens as plain text; with --ids, leave special tokens out");
  flags.group("Output");
  json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("tokenize", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  const int given = (text ? 1 : 0) + (text_file ? 1 : 0) + (ids ? 1 : 0);
  if (given != 1) {
    return fail("tokenize", {ErrorCode::BadUsage, fmt::format("give one of --text, --text-file and "
                                                              "--ids{}",
                                                              given > 1 ? ", not several" : "")});
  }
  if (auto ok = json.check(); !ok) return fail("tokenize", ok.error());
  if (text_file) {
    auto read = read_text("--text-file", *text_file);
    if (!read) return fail("tokenize", read.error());
    text = *std::move(read);
  }
  const auto engine = model.open();
  if (!engine) return fail("tokenize", engine.error());
  const Tokenizer* tokenizer = engine->tokenizer();
  if (tokenizer == nullptr) {
    return fail("tokenize", {ErrorCode::Unsupported, "the model has no tokenizer"});
  }

  const bool to_text = ids.has_value();
  if (to_text) {
    auto decoded = text_of(*tokenizer, *ids, plain);
    if (!decoded) return fail("tokenize", decoded.error());
    text = *std::move(decoded);
  } else {
    ids.emplace();
    tokenizer->encode(*text, !plain, *ids);
  }
  if (!json.is_stdout()) {
    const std::string shown = to_text ? *text : join_ids(*ids);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fputc('\n', stdout);
  }
  Json report = report_header("tokenize", model, *engine, "none");
  report["ids"] = *ids;
  report["text"] = *text;
  if (auto written = json.write(report); !written) return fail("tokenize", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
