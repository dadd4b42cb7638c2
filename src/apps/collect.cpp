// paceline collect: records what the trunk writes, with the hiddens that a draft head reads.
#include <fmt/core.h>

#include <chrono>
#include <limits>
#include <unordered_set>

#include "apps/collect_answers.h"
#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/dump_flags.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/prompt_flags.h"
#include "apps/say.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

struct CollectFlags {
  ModelFlags model;
  PromptFlags prompts;
  DecodeFlags decode;
  DumpFlags dump;
  JsonFile json;
  int batch = 16;
  int limit = std::numeric_limits<int>::max();
};

Result<void> check_ids_differ(const std::vector<PromptSource>& sources) {
  std::unordered_set<std::string_view> ids;
  for (const PromptSource& source : sources) {
    if (ids.insert(source.id).second) continue;
    return Error{ErrorCode::BadUsage,
                 fmt::format("{}: the id {} is there twice; streams of a dump go by their ids",
                             source.where, quoted_name(source.id))};
  }
  return {};
}

std::string time_left(const CollectProgress& progress) {
  if (progress.written == 0) return "";
  const size_t to_do = progress.total - progress.skipped - progress.written;
  const double left =
      progress.seconds / static_cast<double>(progress.written) * static_cast<double>(to_do);
  const auto minutes = static_cast<int64_t>(left / 60);
  if (minutes >= 60) return fmt::format(", {} h {} min left", minutes / 60, minutes % 60);
  return minutes > 0 ? fmt::format(", {} min left", minutes)
                     : fmt::format(", {} s left", static_cast<int>(left));
}

// A line that is written over on a terminal, and a line a minute elsewhere.
class Report {
 public:
  void show(const CollectProgress& progress) {
    const bool terminal = stderr_is_terminal();
    if (progress.seconds < next_) return;
    next_ = progress.seconds + (terminal ? 0.2 : 60);
    const std::string text = fmt::format(
        "{} of {} streams, {} positions, {:.0f} tokens/s{}", progress.skipped + progress.written,
        progress.total, progress.positions, progress.tokens_per_second(), time_left(progress));
    if (terminal)
      line_.show(text);
    else
      say(stderr, "{}\n", text);
  }
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  double next_ = 1;
};

Json settings_json(const DecodeFlags& decode, const Engine& engine, const ModelFlags& model) {
  return Json{{"kind", "answers"},
              {"max_tokens", decode.max_tokens},
              {"context", engine.context()},
              {"stop", decode.stop},
              {"ignore_eos", decode.ignore_eos},
              {"kernels", model.kernels == 0 ? "exact" : "wide"},
              {"sampling", sampling_json(decode.sampling)}};
}

}  // namespace

int collect(Args args) {
  CollectFlags given;
  Flags flags("collect", "Record the model's own answers, with the hiddens a draft head reads.",
              "paceline collect model.gguf --out dump --prompts prompts.jsonl");
  given.model.add(flags);
  given.prompts.add(flags);
  given.decode.add(flags, 256, false);
  flags.group("Recording");
  given.dump.add(flags, "--out", "folder of the dump; streams that it has are skipped");
  flags.integer("--batch", given.batch, 1, 128, "sequences side by side (default: 16)");
  flags.integer("--limit", given.limit, 1, std::numeric_limits<int>::max(),
                "take the first N prompts only");
  flags.group("Output");
  given.json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("collect", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (!given.dump.folder || given.dump.folder->empty()) {
    return fail("collect", {ErrorCode::BadUsage, "--out is missing: the folder of the dump"});
  }
  if (auto ok = given.decode.check(); !ok) return fail("collect", ok.error());
  if (auto ok = given.json.check(given.model.model); !ok) return fail("collect", ok.error());
  std::string prompts_sha256;
  auto sources = given.prompts.read(&prompts_sha256);
  if (!sources) return fail("collect", sources.error());
  if (sources->size() > static_cast<size_t>(given.limit))
    sources->resize(static_cast<size_t>(given.limit));
  if (auto ok = check_ids_differ(*sources); !ok) return fail("collect", ok.error());

  catch_interrupts();
  const auto engine = given.model.open();
  if (!engine) return fail("collect", engine.error());
  const auto prompts = given.prompts.encode(*sources, *engine);
  if (!prompts) return fail("collect", prompts.error());
  Request request = given.decode.request({}, given.model.seed);
  request.depth = 0;
  request.prompt = prompts->front().ids;
  if (auto ok = check_request(*engine, request); !ok) return fail("collect", ok.error());

  const DumpHeader header = given.dump.header(
      *engine, given.model.seed, settings_json(given.decode, *engine, given.model), prompts_sha256);
  auto dump = DumpWriter::open(*given.dump.folder, header);
  if (!dump) return fail("collect", dump.error());
  print_warnings(*engine);
  Json report = report_header("collect", given.model, *engine, "none");
  report["sampling"] = sampling_json(given.decode.sampling);
  if (dump->dropped_bytes() > 0) {
    say(stderr, "{} bytes at the end of the dump were no whole stream and are dropped\n",
        dump->dropped_bytes());
  }

  Report shown;
  const CollectAnswers options = {
      .batch = given.batch,
      .type = given.dump.dump_type(),
      .progress = [&](const CollectProgress& progress) { shown.show(progress); },
      .stop = interrupted};
  const auto result = collect_answers(*engine, *prompts, request, given.model.seed, options, *dump);
  shown.clear();
  if (!result) return fail("collect", result.error());
  if (auto synced = dump->sync(); !synced) return fail("collect", synced.error());

  say(stderr, "{} streams, {} positions in {} shards; {:.1f} tokens/s, {} in a short cycle\n",
      dump->streams(), dump->positions(), dump->shards(), result->tokens_per_second(),
      result->cyclic);
  if (interrupted()) say(stderr, "interrupted; the same command goes on where it was stopped\n");
  report["interrupted"] = interrupted();
  report["out"] = *given.dump.folder;
  report["positions"] = dump->positions();
  report["streams"] = dump->streams();
  report["shards"] = dump->shards();
  report["new_streams"] = result->written;
  report["new_positions"] = result->positions;
  report["tokens"] = result->tokens;
  report["seconds"] = result->seconds;
  report["tokens_per_second"] = result->tokens_per_second();
  report["dropped_bytes"] = dump->dropped_bytes();
  if (auto written = given.json.write(report); !written) return fail("collect", written.error());
  return interrupted() ? kExitInterrupted : kExitSuccess;
}

}  // namespace paceline::apps
