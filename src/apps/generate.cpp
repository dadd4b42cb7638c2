// paceline generate: continues prompts, one arm or several side by side, and says whether the arms
// wrote the same.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/dump_flags.h"
#include "apps/gap_log.h"
#include "apps/gate_report.h"
#include "apps/generate_report.h"
#include "apps/html_file.h"
#include "apps/id_stream.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/prompt_flags.h"
#include "apps/report_file.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

struct GenerateFlags {
  ModelFlags model;
  PromptFlags prompts;
  DecodeFlags decode;
  SpecFlags spec;
  DumpFlags dump;
  ReportFile gap_log{"--gap-log", /*takes_stdout=*/false};
  JsonFile json;
  HtmlFile html;
  int color = 0;  // index into auto, always, never
};

Request request_for(const GenerateFlags& flags, const std::vector<Prompt>& prompts,
                    const std::vector<std::vector<TokenId>>& scripts, size_t index) {
  Request request = flags.decode.request(prompts[index].ids, flags.model.seed);
  request.drafter = flags.spec.kind();
  request.allow_inexact = flags.spec.allow_inexact;
  request.gaps = flags.gap_log.path.has_value() || flags.html.wanted();
  if (!scripts.empty()) request.script = scripts[index];
  return request;
}

// Records the run of one prompt under an id that is new to the dump.
Result<ArmResult> run_recorded(const GenerateFlags& flags, const Engine& engine,
                               const Prompt& prompt, Request request, TextSink& sink,
                               DumpWriter& dump) {
  StreamRecorder recorder(dump.unused_id(prompt.id), prompt.category, prompt.ids,
                          flags.dump.rows(engine));
  request.row_sink = &recorder;
  auto arm = run_arm(engine, request, sink);
  if (!arm || arm->finish_reason == FinishReason::Interrupted) return arm;
  const int room = engine.context() - static_cast<int>(prompt.ids.size());
  auto added = dump.add(recorder.finish(arm->finish_reason, std::min(request.max_tokens, room)));
  return added ? std::move(arm) : added.error();
}

// Runs every arm over every prompt until all is done or Ctrl-C.
Result<std::vector<PromptResult>> run_all(const GenerateFlags& flags, const Engine& engine,
                                          const std::vector<Prompt>& prompts,
                                          const std::vector<std::vector<TokenId>>& scripts,
                                          DumpWriter* dump) {
  const bool show_text = !flags.json.is_stdout();
  const bool on_terminal = stdout_is_terminal();
  const bool color = use_color(static_cast<ColorChoice>(flags.color));
  std::vector<PromptResult> results;
  for (size_t i = 0; i < prompts.size() && !interrupted(); ++i) {
    PromptResult result{prompts[i].id, prompts[i].ids, {}};
    for (const DraftShape& shape : flags.spec.arms) {
      if (interrupted()) break;
      Request request = request_for(flags, prompts, scripts, i);
      request.depth = shape.depth;
      request.tree = shape.tree;
      const bool streams = show_text && (result.arms.empty() || on_terminal);
      if (streams && on_terminal && prompts.size() * flags.spec.arms.size() > 1) {
        say("{}\n",
            dimmed(fmt::format("-- prompt {}, depth {}", prompts[i].id, shape_name(shape))));
      }
      TextSink sink(streams, color);
      auto arm = dump == nullptr ? run_arm(engine, request, sink)
                                 : run_recorded(flags, engine, prompts[i], request, sink, *dump);
      if (!arm) return arm.error();
      if (result.arms.empty()) engine.learn(arm->token_ids);  // the others write the same
      result.arms.push_back(*std::move(arm));
    }
    results.push_back(std::move(result));
  }
  return results;
}

Result<void> write_gap_log(const ReportFile& file, const Json& report,
                           const std::vector<PromptResult>& results) {
  std::string text;
  for (const PromptResult& result : results) {
    if (result.arms.empty()) continue;
    const ArmResult& arm = result.arms[0];
    if (text.empty())
      text = gap_header_line(configuration_of(report, shape_name(arm.shape), arm.drafter));
    text += gap_lines(result.id, arm);
  }
  return file.write(text);
}

// The report with what the page alone shows: texts in pieces, and prompts as text.
Result<void> write_page(const GenerateFlags& given, const Engine& engine, Json report,
                        const std::vector<PromptResult>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    Json& result = report["results"][i];
    result["prompt_text"] = engine.decode(results[i].prompt_ids);
    for (size_t a = 0; a < results[i].arms.size(); ++a) {
      Json pieces = Json::array();
      for (const DraftedText& piece : results[i].arms[a].pieces)
        pieces.push_back(piece.depth == 0
                             ? Json::array({piece.text, 0})
                             : Json::array({piece.text, piece.depth, to_string(piece.source)}));
      result["arms"][a]["pieces"] = std::move(pieces);
    }
  }
  return given.html.write(report);
}

}  // namespace

int generate(Args args) {
  GenerateFlags given;
  Flags flags("generate", "Continue prompts; the text goes to standard output as it comes.",
              "paceline generate model.gguf --prompt \"Say it again: a b c d e\" --depths 0,auto");
  given.model.add(flags);
  given.prompts.add(flags);
  given.decode.add(flags, 256, true);
  given.spec.add(flags, "several arms side by side, such as 0,4,8:15,auto", {DraftShape()});
  flags.group("Output");
  given.json.add_flag(flags);
  given.html.add_flag(flags);
  flags.text(given.gap_log.flag(), "FILE", given.gap_log.path,
             "for each token, how far the second likeliest was behind the first (one arm)");
  flags.choice("--color", {"auto", "always", "never"}, given.color,
               "drafted tokens in colour by depth (default: on a terminal)");
  flags.group("Recording");
  given.dump.add(flags, "--dump", "record the run, with drafts and hiddens, in this folder");

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("generate", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = given.spec.check(true); !ok) return fail("generate", ok.error());
  if (auto ok = given.decode.check(); !ok) return fail("generate", ok.error());
  std::vector<std::string> inputs = {given.model.model};
  for (const auto& files : {given.prompts.files(), given.spec.files()})
    inputs.insert(inputs.end(), files.begin(), files.end());
  if (given.dump.folder) inputs.push_back(*given.dump.folder);
  if (auto ok = check_outputs({given.json.file(), given.html.file(), &given.gap_log}, inputs); !ok)
    return fail("generate", ok.error());
  if (auto ok = given.dump.check("--dump"); !ok) return fail("generate", ok.error());
  if (given.dump.folder && given.spec.arms.size() > 1) {
    return fail("generate", {ErrorCode::BadUsage, "--dump records one arm; give one --depth"});
  }
  if (given.dump.folder && given.spec.arms[0].tree > 0)
    return fail("generate", {ErrorCode::BadUsage, "--dump records chains; leave --tree out"});
  if (given.gap_log.path && given.spec.arms.size() > 1)
    return fail("generate", {ErrorCode::BadUsage, "--gap-log is of one arm; give one --depth"});
  std::string prompts_sha256;
  const auto sources = given.prompts.read(&prompts_sha256);
  if (!sources) return fail("generate", sources.error());
  const auto scripts = given.spec.read_scripts(sources->size());
  if (!scripts) return fail("generate", scripts.error());

  catch_interrupts();
  const auto engine = given.model.open(given.spec.head_choice(), given.spec.store_choice());
  if (!engine) return fail("generate", engine.error());
  const auto prompts = given.prompts.encode(*sources, *engine);
  if (!prompts) return fail("generate", prompts.error());
  for (size_t i = 0; i < prompts->size(); ++i) {
    auto ok = check_request(*engine, request_for(given, *prompts, *scripts, i));
    if (ok && given.dump.folder) ok = check_stream_names((*prompts)[i].id, (*prompts)[i].category);
    if (!ok) return fail("generate", ok.error());
  }
  std::optional<DumpWriter> dump;
  if (given.dump.folder) {
    const Json settings = answer_settings("generate", given.decode, given.model, *engine);
    auto opened = DumpWriter::open(
        *given.dump.folder, given.dump.header(*engine, given.model.seed, settings, prompts_sha256));
    if (!opened) return fail("generate", opened.error());
    dump = *std::move(opened);
  }
  print_warnings(*engine);
  Json report = report_header("generate", given.model, *engine, given.spec.drafter_name());
  report["prompts_sha256"] = sha256_of_prompts(*prompts);
  report["sampling"] = sampling_json(given.decode.sampling);
  settle_gate(*engine, given.spec, report);

  const auto results = run_all(given, *engine, *prompts, *scripts, dump ? &*dump : nullptr);
  if (!results) return fail("generate", results.error());
  const bool same = std::all_of(results->begin(), results->end(),
                                [](const PromptResult& result) { return result.identical(); });
  print_summary(*results, given.spec.arms);
  if (interrupted()) say(stderr, "interrupted\n");
  const auto kept = keep_learnt(*engine);  // reports are written all the same
  report["interrupted"] = interrupted();
  report["identical"] = same;
  report["results"] = results_json(*results);
  if (dump) {
    report["dump"] = Json{{"folder", *given.dump.folder},
                          {"positions", dump->positions()},
                          {"streams", dump->streams()},
                          {"shards", dump->shards()}};
  }
  if (given.gap_log.path)
    if (auto written = write_gap_log(given.gap_log, report, *results); !written)
      return fail("generate", written.error());
  if (auto written = given.json.write(report); !written) return fail("generate", written.error());
  if (given.html.wanted())
    if (auto written = write_page(given, *engine, report, *results); !written)
      return fail("generate", written.error());
  if (!kept) return fail("generate", kept.error());
  if (interrupted()) return kExitInterrupted;
  return same ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
