// paceline collect: records what the trunk writes, with the hiddens that a draft head reads.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "apps/collect_answers.h"
#include "apps/collect_text.h"
#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/dump_flags.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/output_path.h"
#include "apps/prompt_flags.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "io/dump_writer.h"
#include "io/records.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

constexpr int kMostBatch = 128;

struct CollectFlags {
  ModelFlags model;
  PromptFlags prompts;
  DecodeFlags decode;
  DumpFlags dump;
  JsonFile json;
  std::optional<std::string> text;
  std::optional<std::string> records;
  std::optional<std::string> head;
  int depth = -1;  // of recorded drafts; -1: probes where there is a head
  int batch = 0;   // 0: as many as pay
  int limit = std::numeric_limits<int>::max();

  Result<void> check() const;
};

Error usage(std::string what) { return {ErrorCode::BadUsage, std::move(what)}; }

Result<void> CollectFlags::check() const {
  if (!dump.folder) {
    return usage("--out is missing: the folder that the dump is in, or is to be in");
  }
  if (auto ok = dump.check("--out"); !ok) return ok;
  if (text && prompts.any()) return usage("give --text or prompts, not both");
  if (text && (prompts.raw || prompts.system)) {
    return usage("--text is recorded as it is; --raw and --system go with prompts");
  }
  std::vector<std::string> inputs = {model.model, *dump.folder};
  for (const auto& file : {text, prompts.file, head})
    if (file && *file != "-") inputs.push_back(*file);
  if (records)
    if (auto ok = check_output("--records", *records, inputs); !ok) return ok;
  if (text && (head || depth > 0))
    return usage("--text is recorded as it is; --head and --depth go with prompts");
  if (head && head->empty()) return usage("--head wants the name of a file");
  if (auto ok = decode.check(); !ok) return ok;
  if (records) inputs.push_back(*records);
  return check_outputs({json.file()}, inputs);
}

// What is to be recorded, as it was given and as the trunk reads it.
struct Sources {
  std::vector<PromptSource> prompts;
  std::vector<TextSource> texts;
  std::string sha256;
};

Result<Sources> read_sources(const CollectFlags& given) {
  Sources sources;
  if (given.text) {
    auto texts = read_texts(*given.text, &sources.sha256);
    if (!texts) return texts.error();
    sources.texts = *std::move(texts);
  } else {
    auto prompts = given.prompts.read(&sources.sha256);
    if (!prompts) return prompts.error();
    sources.prompts = *std::move(prompts);
  }
  return sources;
}

constexpr int kPieceTokens = 512;  // of a given text, unless --context says otherwise

int piece_tokens(const CollectFlags& given, const Engine& engine) {
  return given.model.context > 0 ? engine.context() : std::min(kPieceTokens, engine.context());
}

Result<std::vector<Prompt>> encode(const CollectFlags& given, const Engine& engine,
                                   Sources sources) {
  const auto limit = static_cast<size_t>(given.limit);
  if (!given.text && sources.prompts.size() > limit) sources.prompts.resize(limit);
  auto prompts = given.text ? cut_texts(engine, sources.texts, piece_tokens(given, engine))
                            : given.prompts.encode(sources.prompts, engine);
  if (!prompts) return prompts.error();
  if (prompts->size() > limit) prompts->resize(limit);
  std::unordered_set<std::string_view> ids;
  for (const Prompt& prompt : *prompts) {
    if (auto ok = check_stream_names(prompt.id, prompt.category); !ok) return ok.error();
    if (ids.insert(prompt.id).second) continue;
    return usage(fmt::format("the id {} is given twice; streams of a dump go by their ids",
                             quoted_name(prompt.id)));
  }
  return prompts;
}

// What decides, beside the model, which streams come of the same prompts.
Json settings_json(const CollectFlags& given, const Engine& engine) {
  if (!given.text) return answer_settings("answers", given.decode, given.model, engine);
  return Json{{"kind", "text"},
              {"piece", piece_tokens(given, engine)},
              {"kernels", given.model.kernels == 0 ? "exact" : "wide"}};
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
class ProgressReport {
 public:
  void show(const CollectProgress& progress) {
    if (progress.seconds < next_) return;
    next_ = progress.seconds + period_;
    const std::string text = fmt::format(
        "{} of {} streams, {} positions, {:.0f} tokens/s{}", progress.skipped + progress.written,
        progress.total, progress.positions, progress.tokens_per_second(), time_left(progress));
    if (terminal_)
      line_.show(text);
    else
      say(stderr, "{}\n", text);
  }
  void clear() { line_.clear(); }

 private:
  bool terminal_ = stderr_is_terminal();
  double period_ = terminal_ ? 0.2 : 60;  // seconds
  double next_ = period_;
  ProgressLine line_;
};

// Below this share of the trunk's own first choices a given text is another's way of writing.
constexpr double kLeastOwnShare = 0.8;

void print_result(const CollectFlags& given, const CollectProgress& result,
                  const DumpWriter& dump) {
  say(stderr, "{} streams, {} positions in {} shards; this run: {} streams, {:.1f} tokens/s",
      dump.streams(), dump.positions(), dump.shards(), result.written, result.tokens_per_second());
  if (result.cyclic > 0) say(stderr, ", {} end in a short cycle", result.cyclic);
  say(stderr, "\n");
  if (given.text && result.scored > 0) {
    const double share = result.own_top1_share();
    say(stderr, "the trunk's own first choice: {:.1f} % of {} tokens\n", 100 * share,
        result.scored);
    if (share < kLeastOwnShare) {
      say(stderr,
          "warning: that is below {:.0f} %, the trunk would write something else; evaluate heads "
          "on "
          "its own answers\n",
          100 * kLeastOwnShare);
    }
  }
  if (interrupted()) say(stderr, "interrupted; the same command goes on where it was stopped\n");
}

void add_result(const CollectProgress& result, const DumpWriter& dump, Json& report) {
  report["interrupted"] = interrupted();
  report["positions"] = dump.positions();
  report["streams"] = dump.streams();
  report["shards"] = dump.shards();
  report["dropped_bytes"] = dump.dropped_bytes();
  report["new_streams"] = result.written;
  report["new_positions"] = result.positions;
  report["cyclic"] = result.cyclic;
  report["own_top1_share"] = result.scored > 0 ? Json(result.own_top1_share()) : Json(nullptr);
  report["tokens"] = result.tokens;
  report["seconds"] = result.seconds;
  report["tokens_per_second"] = result.tokens_per_second();
}

Result<void> write_records_of(const CollectFlags& given) {
  const auto dump = Dump::open(*given.dump.folder);
  if (!dump) return dump.error();
  const auto records = write_records(*given.records, *dump);
  if (!records) return records.error();
  say(stderr, "{} records in {}\n", *records, *given.records);
  return {};
}

Result<CollectProgress> run(const CollectFlags& given, const Engine& engine,
                            const std::vector<Prompt>& prompts, const Request& request,
                            DumpWriter& dump) {
  ProgressReport shown;
  const CollectAnswers options = {
      .batch = given.batch > 0 ? given.batch : std::min(kLaneBatch * engine.threads(), kMostBatch),
      .rows = given.dump.rows(engine),
      .depth = engine.head() == nullptr ? 0
               : given.depth < 0        ? kProbeDepth
                                        : given.depth,
      .probes = given.depth < 0,
      .progress = [&](const CollectProgress& progress) { shown.show(progress); },
      .stop = interrupted};
  auto result = given.text
                    ? collect_text(engine, prompts, options, dump)
                    : collect_answers(engine, prompts, request, given.model.seed, options, dump);
  shown.clear();
  if (!result) return result;
  if (auto synced = dump.sync(); !synced) return synced.error();
  return result;
}

}  // namespace

int collect(Args args) {
  CollectFlags given;
  Flags flags("collect", "Record the model's own answers, with the hiddens that a head reads.",
              "paceline collect model.gguf --out dump --prompts prompts.jsonl");
  given.model.add(flags);
  given.prompts.add(flags);
  flags.text("--text", "FILE", given.text,
             "record given text instead: .jsonl with text, id, category; any other file is cut "
             "into pieces of --context tokens (default: 512)");
  given.decode.add(flags, 256, false);
  flags.group("Recording");
  given.dump.add(flags, "--out", "folder of the dump; streams that it has are skipped");
  flags.text("--records", "FILE", given.records,
             "then write the whole dump as records without header: pos, row, token, hidden");
  flags.text("--head", "FILE", given.head,
             "draft head whose drafts are recorded too (default: the one found for the model)");
  flags.integer("--depth", given.depth, 0, kMaxDepth,
                fmt::format("its drafts a round, recorded with every answer (default: {} with one "
                            "answer in {}, where there is a head)",
                            kProbeDepth, kProbeEvery));
  flags.integer("--batch", given.batch, 1, kMostBatch,
                fmt::format("sequences side by side (default: {} a thread, at most {})", kLaneBatch,
                            kMostBatch));
  flags.integer("--limit", given.limit, 1, std::numeric_limits<int>::max(),
                "take the first N prompts or pieces only");
  flags.group("Output");
  given.json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("collect", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = given.check(); !ok) return fail("collect", ok.error());
  auto sources = read_sources(given);
  if (!sources) return fail("collect", sources.error());
  const std::string prompts_sha256 = sources->sha256;

  catch_interrupts();
  const bool may_draft = !given.text && given.depth != 0;
  const auto engine = given.model.open({.load = may_draft, .file = given.head.value_or("")});
  if (!engine) return fail("collect", engine.error());
  if (given.depth > 0 && engine->head() == nullptr)
    return fail("collect", {ErrorCode::NotFound, engine->no_head()});
  const auto prompts = encode(given, *engine, *std::move(sources));
  if (!prompts) return fail("collect", prompts.error());
  Request request = given.decode.request(prompts->front().ids, given.model.seed);
  request.depth = 0;
  if (!given.text) {
    if (auto ok = check_request(*engine, request); !ok) return fail("collect", ok.error());
  }
  const DumpHeader header =
      given.dump.header(*engine, given.model.seed, settings_json(given, *engine), prompts_sha256);
  auto dump = DumpWriter::open(*given.dump.folder, header);
  if (!dump) return fail("collect", dump.error());
  print_warnings(*engine);
  Json report = report_header("collect", given.model, *engine, "none");
  report["prompts_sha256"] = sha256_of_prompts(*prompts);
  report["sampling"] = sampling_json(given.decode.sampling);
  report["out"] = *given.dump.folder;
  if (dump->dropped_bytes() > 0) {
    say(stderr, "{} bytes at the end of the dump were no whole stream and are dropped\n",
        dump->dropped_bytes());
  }

  const auto result = run(given, *engine, *prompts, request, *dump);
  if (!result) return fail("collect", result.error());
  print_result(given, *result, *dump);
  if (given.records && !interrupted()) {
    if (auto written = write_records_of(given); !written) return fail("collect", written.error());
  }
  add_result(*result, *dump, report);
  if (auto written = given.json.write(report); !written) return fail("collect", written.error());
  return interrupted() ? kExitInterrupted : kExitSuccess;
}

}  // namespace paceline::apps
