// paceline drift: did two runs write the same? Of one model, which it runs twice, or of any origin.
#include <fmt/core.h>

#include <filesystem>

#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/embedded.h"
#include "apps/gate_report.h"
#include "apps/html_file.h"
#include "apps/id_stream.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/prompt_flags.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/text_file.h"
#include "apps/values.h"
#include "io/output_file.h"
#include "measure/forced.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

struct DriftFlags {
  ModelFlags model;  // its positional is the first stream where there are two
  std::optional<std::string> other;
  PromptFlags prompts;
  DecodeFlags decode;
  SpecFlags spec;
  std::optional<std::string> out;
  JsonFile json;
  HtmlFile html;
};

// One run over all prompts.
struct Arm {
  DraftShape shape;
  std::string drafter;
  std::vector<measure::IdStream> streams;
  int64_t round_tokens = 0;
  int64_t rounds = 0;
  double seconds = 0;
  std::vector<int64_t> accepted_by_depth;
  std::string file;  // what is written

  void add(const Prompt& prompt, const ArmResult& result) {
    drafter = result.drafter;
    streams.push_back({join_ids(prompt.ids), result.token_ids});
    file += id_line(prompt.ids, result.token_ids);
    round_tokens += result.stats.round_tokens;
    rounds += result.stats.rounds;
    seconds += result.stats.decode_seconds();
    const auto& accepted = result.stats.accepted_by_depth;
    accepted_by_depth.resize(std::max(accepted_by_depth.size(), accepted.size()));
    for (size_t d = 0; d < accepted.size(); ++d) accepted_by_depth[d] += accepted[d];
  }
  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(round_tokens) / seconds : 0;
  }
};

Json flip_json(const std::optional<measure::Flip>& flip) {
  if (!flip) return nullptr;
  return Json{
      {"prompt", flip->prompt}, {"position", flip->position}, {"a", flip->a}, {"b", flip->b}};
}

// What a comparison of ids alone can say.
void add_drift(const measure::Drift& drift, Json& report) {
  report["outcome"] = measure::to_string(drift.outcome);
  Json prompts = Json::array();
  for (const measure::PromptDrift& prompt : drift.prompts)
    prompts.push_back(Json{{"outcome", measure::to_string(prompt.outcome)},
                           {"first_flip", flip_json(prompt.first_flip)},
                           {"tokens", {prompt.length_a, prompt.length_b}},
                           {"cyclic", {prompt.cyclic_a, prompt.cyclic_b}}});
  report["prompts"] = std::move(prompts);
  report["first_flip"] = flip_json(drift.first_flip);
  report["flip_rate"] = drift.flip_rate();
  report["positions"] = drift.compared;
  report["teacher_forced_rate"] = nullptr;
  report["tokens_per_second"] = nullptr;
  report["accepted_by_depth"] = nullptr;
}

void print_drift(const measure::Drift& drift) {
  int different = 0;
  for (const measure::PromptDrift& prompt : drift.prompts)
    different += prompt.outcome == measure::DriftOutcome::Same ? 0 : 1;
  say("outcome: {}, {} of {} prompts differ; {} of {} positions\n",
      measure::to_string(drift.outcome), different, drift.prompts.size(), drift.differing,
      drift.compared);
  if (drift.first_flip)
    say("first flip: prompt {}, position {}: {} in the first run, {} in the second\n",
        drift.first_flip->prompt + 1, drift.first_flip->position, drift.first_flip->a,
        drift.first_flip->b);
  for (size_t i = 0; i < drift.prompts.size(); ++i)
    if (drift.prompts[i].cyclic_a || drift.prompts[i].cyclic_b)
      say("prompt {}: an answer runs into a short cycle; its acceptance says little\n", i + 1);
}

int finish(const DriftFlags& given, const measure::Drift& drift, const Json& report) {
  if (auto written = given.json.write(report); !written) return fail("drift", written.error());
  if (auto written = given.html.write(report); !written) return fail("drift", written.error());
  return drift.outcome == measure::DriftOutcome::Same ? kExitSuccess : kExitCheckFailed;
}

int compare_files(const DriftFlags& given) {
  if (given.prompts.any() || given.out)
    return fail("drift", {ErrorCode::BadUsage,
                          "two streams are compared as they are: leave --prompts and --out away"});
  IdFile files[2];
  const std::string* paths[] = {&given.model.model, &*given.other};
  for (int i = 0; i < 2; ++i) {
    const auto text = read_text("drift", *paths[i]);
    if (!text) return fail("drift", text.error());
    auto file = parse_id_file(*text, *paths[i]);
    if (!file) return fail("drift", file.error());
    files[i] = *std::move(file);
  }
  if (!files[0].configuration.is_null() && files[0].configuration == files[1].configuration)
    return fail("drift", {ErrorCode::BadUsage,
                          "both files say that they come from the same configuration; comparing a "
                          "run with itself shows nothing"});
  const auto drift = measure::compare_streams(files[0].streams, files[1].streams);
  if (!drift) return fail("drift", drift.error());
  Json report = report_head("drift");
  report["a"] = *paths[0];
  report["b"] = *paths[1];
  report["configurations"] = {files[0].configuration, files[1].configuration};
  add_drift(*drift, report);
  if (!given.json.is_stdout()) print_drift(*drift);
  return finish(given, *drift, report);
}

Json forced_json(const measure::Forced& forced) {
  constexpr size_t kBuckets = measure::Forced::kGaps.size();
  Json by_gap = Json::array();
  for (size_t i = 0; i < kBuckets; ++i)
    by_gap.push_back(Json{{"from", measure::Forced::kGaps[i]},
                          {"to", i + 1 < kBuckets ? Json(measure::Forced::kGaps[i + 1]) : Json()},
                          {"positions", forced.by_gap[i]},
                          {"differing", forced.differing[i]}});
  return by_gap;
}

Json forced_flip_json(int prompt, const measure::ForcedFlip& flip) {
  return Json{{"prompt", prompt},
              {"position", flip.position},
              {"a", flip.a},
              {"b", flip.b},
              {"gap", flip.gap},
              {"rank_of_a_in_b", flip.rank_of_a},
              {"rank_of_b_in_a", flip.rank_of_b}};
}

Request request_for(const DriftFlags& given, const Prompt& prompt,
                    const std::vector<std::vector<TokenId>>& scripts, size_t index,
                    const DraftShape& shape) {
  Request request = given.decode.request(prompt.ids, given.model.seed);
  request.drafter = given.spec.kind();
  request.allow_inexact = given.spec.allow_inexact;
  request.depth = shape.depth;
  request.tree = shape.tree;
  if (!scripts.empty()) request.script = scripts[index];
  return request;
}

int run_model(DriftFlags& given) {
  if (given.spec.arms.size() != 2)
    return fail("drift", {ErrorCode::BadUsage,
                          fmt::format("--depths wants two arms, not {}", given.spec.arms.size())});
  if (given.spec.arms[0] == given.spec.arms[1])
    return fail("drift", {ErrorCode::BadUsage,
                          fmt::format("--depths names {} twice; comparing a run with itself shows "
                                      "nothing",
                                      shape_name(given.spec.arms[0]))});
  if (!given.out || given.out->empty())
    return fail("drift", {ErrorCode::BadUsage, "wants --out DIR, where both streams are written"});
  const auto sources = given.prompts.any()
                           ? given.prompts.read()
                           : parse_prompts(drift_prompts(), "the built-in prompts", true);
  if (!sources) return fail("drift", sources.error());
  const auto scripts = given.spec.read_scripts(sources->size());
  if (!scripts) return fail("drift", scripts.error());

  catch_interrupts();
  const auto engine = given.model.open(given.spec.head_choice(), given.spec.store_choice());
  if (!engine) return fail("drift", engine.error());
  const auto prompts = given.prompts.encode(*sources, *engine);
  if (!prompts) return fail("drift", prompts.error());
  for (size_t i = 0; i < prompts->size(); ++i) {
    auto ok = check_request(*engine,
                            request_for(given, (*prompts)[i], *scripts, i, given.spec.arms.back()));
    if (!ok) return fail("drift", ok.error());
  }
  const fs::path folder(*given.out);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return fail("drift", {ErrorCode::Io, fmt::format("--out {}: cannot make the folder: {}",
                                                     *given.out, failed.message())});
  print_warnings(*engine);
  Json report = report_header("drift", given.model, *engine, given.spec.drafter_name());
  report["prompts_sha256"] = sha256_of_prompts(*prompts);
  report["sampling"] = sampling_json(given.decode.sampling);
  report["max_tokens"] = given.decode.max_tokens;
  settle_gate(*engine, given.spec, report);

  ProgressLine progress;
  Arm arms[2];
  int widths[2];
  measure::Forced forced;
  Json first_forced;
  for (int i = 0; i < 2; ++i) {
    arms[i].shape = given.spec.arms[i];
    const int depth = arms[i].shape.depth;
    widths[i] = (depth == kAutoDepth ? kMaxDepth : depth) + 1;
  }
  for (size_t p = 0; p < prompts->size() && !interrupted(); ++p) {
    const Prompt& prompt = (*prompts)[p];
    progress.show("both runs", static_cast<double>(p) / static_cast<double>(prompts->size()));
    TextSink silent(false, false);
    for (Arm& arm : arms) {
      const auto result =
          run_arm(*engine, request_for(given, prompt, *scripts, p, arm.shape), silent);
      if (!result) return fail("drift", result.error());
      arm.add(prompt, *result);
    }
    if (interrupted()) break;
    auto read = measure::compare_forced(*engine, prompt.ids, arms[0].streams.back().ids, widths[0],
                                        widths[1], forced, interrupted);
    if (!read && read.error().code != ErrorCode::Interrupted) return fail("drift", read.error());
    if (first_forced.is_null() && !forced.flips.empty())
      first_forced = forced_flip_json(static_cast<int>(p), forced.flips.front());
  }
  progress.clear();
  if (interrupted()) {  // the last prompt may be cut in one arm and not in the other
    say(stderr, "interrupted\n");
    return kExitInterrupted;
  }

  const auto drift = measure::compare_streams(arms[0].streams, arms[1].streams);
  if (!drift) return fail("drift", drift.error());
  add_drift(*drift, report);
  for (size_t i = 0; i < prompts->size(); ++i) {
    report["prompts"][i]["id"] = (*prompts)[i].id;
    report["prompts"][i]["category"] = (*prompts)[i].category;
  }
  report["teacher_forced_rate"] = forced.rate();
  report["teacher_forced_positions"] = forced.positions;
  report["teacher_forced_moved"] = forced.moved;
  report["by_gap"] = forced_json(forced);
  report["first_forced_flip"] = first_forced;
  report["widths"] = widths;
  Json rates = Json::array();
  Json accepted = Json::array();
  Json longest = 0;
  for (const Prompt& prompt : *prompts)
    longest = std::max(longest.get<size_t>(), prompt.ids.size());
  for (int i = 0; i < 2; ++i) {
    rates.push_back(arms[i].tokens_per_second());
    accepted.push_back(arms[i].accepted_by_depth);
    const Json head{
        {"configuration", configuration_of(report, shape_label(arms[i].shape), arms[i].drafter)}};
    auto written = write_text_file(folder / (i == 0 ? "a.jsonl" : "b.jsonl"),
                                   json_text(head, -1) + "\n" + arms[i].file);
    if (!written) return fail("drift", written.error());
  }
  report["depths"] = {shape_label(arms[0].shape), shape_label(arms[1].shape)};
  report["longest_prefix"] = longest;
  report["tokens_per_second"] = std::move(rates);
  report["accepted_by_depth"] = std::move(accepted);
  auto written = write_text_file(folder / "drift.json", json_text(report, 2) + "\n");
  if (!written) return fail("drift", written.error());
  if (!given.json.is_stdout()) {
    print_drift(*drift);
    say("teacher-forced, in blocks of {} and {} rows: {} of {} positions choose differently, {} "
        "have "
        "a logit that is not the same\n",
        widths[0], widths[1], forced.all_differing(), forced.positions, forced.moved);
    if (!first_forced.is_null()) {
      say("  gap of the first run     positions  differing\n");
      for (size_t i = 0; i < forced.by_gap.size(); ++i)
        say("  from {:<4}               {:10} {:10}\n", measure::Forced::kGaps[i], forced.by_gap[i],
            forced.differing[i]);
    }
    for (const Arm& arm : arms)
      say("depth {:<5}{:<9}{:8.1f} tokens/s\n", shape_name(arm.shape), arm.drafter,
          arm.tokens_per_second());
  }
  return finish(given, *drift, report);
}

}  // namespace

int drift(Args args) {
  DriftFlags given;
  Flags flags(
      "drift",
      "Compare two runs by token ids: two files of {\"prompt\", \"token_ids\"} lines or "
      "reports of generate, or two arms of one model, which are run here and compared "
      "teacher-forced as well, over a built-in prompt set unless one is given. Exit status 0 "
      "where they are the same, else 1.",
      "paceline drift model.gguf --depths 0,4 --out drift");
  given.model.add(flags);
  flags.optional_positional("OTHER", given.other,
                            "the second stream, where MODEL is the first; no model is loaded then");
  given.prompts.add(flags);
  given.decode.add(flags, 128, false);
  given.spec.add(flags, "the two arms", {{.depth = 0}, {.depth = 4}});
  flags.group("Output");
  flags.text("--out", "DIR", given.out, "folder for a.jsonl, b.jsonl and drift.json");
  given.json.add_flag(flags);
  given.html.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("drift", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = given.spec.check(); !ok) return fail("drift", ok.error());
  if (auto ok = given.decode.check(); !ok) return fail("drift", ok.error());
  std::vector<std::string> inputs = {given.model.model};
  for (const auto& files : {given.prompts.files(), given.spec.files()})
    inputs.insert(inputs.end(), files.begin(), files.end());
  if (given.other) inputs.push_back(*given.other);
  if (auto ok = check_outputs({given.json.file(), given.html.file()}, inputs); !ok)
    return fail("drift", ok.error());
  return given.other ? compare_files(given) : run_model(given);
}

}  // namespace paceline::apps
