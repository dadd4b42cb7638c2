// paceline bench: plain and speculative arms, interleaved in one process.
#include "measure/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "apps/bench_batch.h"
#include "apps/bench_checks.h"
#include "apps/bench_floors.h"
#include "apps/bench_price.h"
#include "apps/bench_report.h"
#include "apps/commands.h"
#include "apps/decode_flags.h"
#include "apps/embedded.h"
#include "apps/gate_report.h"
#include "apps/html_file.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/prompt_flags.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/stream.h"
#include "apps/terminal.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

struct BenchFlags {
  ModelFlags model;
  PromptFlags prompts;
  DecodeFlags decode;
  SpecFlags spec;
  JsonFile json;
  HtmlFile html;
  int repeats = 0;  // 0: what goes with --quick
  double seconds = 0;
  bool quick = false;
  bool price = false;
  std::optional<std::string> floors;
  bool strict = false;
  std::vector<int> batch;  // sequences that decode together; none: not measured
};

Result<void> check_flags(BenchFlags& given) {
  if (auto ok = given.spec.check(); !ok) return ok;
  if (auto ok = given.decode.check(); !ok) return ok;
  std::vector<std::string> inputs = {given.model.model};
  for (const auto& files : {given.prompts.files(), given.spec.files()})
    inputs.insert(inputs.end(), files.begin(), files.end());
  if (given.floors) inputs.push_back(*given.floors);
  if (auto ok = check_outputs({given.json.file(), given.html.file()}, inputs); !ok) return ok;
  auto& arms = given.spec.arms;
  if (arms[0].depth != 0) {  // the plain arm is what the others are held against
    std::erase_if(arms, [](const DraftShape& arm) { return arm.depth == 0; });
    arms.insert(arms.begin(), DraftShape{.depth = 0});
  }
  if (given.quick) given.decode.max_tokens = std::min(given.decode.max_tokens, 48);
  if (given.repeats == 0) given.repeats = given.quick ? 1 : 3;
  return {};
}

// The prompts asked for, or the built-in ones; with --quick two of every category.
Result<std::vector<PromptSource>> read_prompts(const BenchFlags& given) {
  if (given.prompts.any()) return given.prompts.read();
  auto sources = parse_prompts(bench_prompts(), "the built-in prompts", true);
  if (!sources || !given.quick) return sources;
  std::vector<PromptSource> few;
  for (PromptSource& source : *sources) {
    const auto same = std::count_if(few.begin(), few.end(), [&](const PromptSource& other) {
      return other.category == source.category;
    });
    if (same < 2) few.push_back(std::move(source));
  }
  return few;
}

// None asked for: none to hold.
Result<BenchFloors> read_floors(const BenchFlags& given, const std::vector<PromptSource>& sources) {
  if (!given.floors) return BenchFloors{};
  std::set<std::string> categories;
  for (const PromptSource& source : sources) categories.insert(source.category);
  return read_bench_floors(*given.floors, categories);
}

std::vector<measure::BenchPrompt> bench_requests(const BenchFlags& given,
                                                 const std::vector<Prompt>& prompts,
                                                 const std::vector<std::vector<TokenId>>& scripts) {
  std::vector<measure::BenchPrompt> list;
  for (size_t i = 0; i < prompts.size(); ++i) {
    measure::BenchPrompt prompt{prompts[i].id, prompts[i].category,
                                given.decode.request(prompts[i].ids, given.model.seed)};
    prompt.request.allow_inexact = given.spec.allow_inexact;
    if (!scripts.empty()) prompt.request.script = scripts[i];
    list.push_back(std::move(prompt));
  }
  return list;
}

Result<measure::BatchResult> bench_batches(const BenchFlags& given, const Engine& engine,
                                           const std::vector<measure::BenchPrompt>& prompts,
                                           ProgressLine& progress) {
  std::vector<Request> requests;
  for (const measure::BenchPrompt& prompt : prompts) {
    Request& request = requests.emplace_back(prompt.request);
    request.ignore_eos = true;  // all run equally long
    request.depth = 0;
  }
  measure::BatchOptions options;
  options.sizes = given.batch;
  options.repeats = given.quick ? 3 : 5;
  options.seed = given.model.seed;
  options.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  options.stop = interrupted;
  return measure::run_batches(engine, requests, options);
}

Result<measure::Price> bench_price(const BenchFlags& given, const Engine& engine,
                                   ProgressLine& progress) {
  constexpr int kPosition = 256;
  const int pairs = given.quick ? 11 : 61;
  return measure::measure_price(
      engine, kPosition, pairs, [&](double share) { progress.show("pricing exactness", share); },
      interrupted);
}

Result<void> write_report(const BenchFlags& given, const Json& report) {
  auto written = given.json.write(report);
  return written ? given.html.write(report) : written;
}

}  // namespace

int bench(Args args) {
  BenchFlags given;
  Flags flags("bench",
              "Time plain and speculative decoding side by side, arms taking turns. Inside the "
              "timing are the rounds; loading, prefill and a warm-up are outside.",
              "paceline bench model.gguf --depths 0,4,auto --json bench.json");
  given.model.add(flags);
  given.prompts.add(flags);
  given.decode.add(flags, 128, false);
  given.spec.add(flags,
                 "arms, depth 0 added in front, with the drafts of a tree behind a colon: "
                 "0,4,8:15,auto (default: 0,auto)",
                 {{.depth = 0}, DraftShape()});
  flags.group("Measuring");
  flags.integer("--repeats", given.repeats, 1, 1000,
                "times each prompt is run in each arm (default: 3); from 2 on the report says what "
                "another run would give");
  flags.value(
      "--seconds", "S",
      [&](std::string_view text) -> Result<void> {
        const auto number = parse_number(text, 0.1, 1e6);
        if (!number) return number.error();
        given.seconds = *number;
        return {};
      },
      "begin no further prompt after this time");
  flags.value(
      "--batch", "N,N,...",
      [&](std::string_view text) -> Result<void> {
        auto sizes = parse_batch_sizes(text);
        if (!sizes) return sizes.error();
        given.batch = *std::move(sizes);
        return {};
      },
      "also tokens a second of so many sequences decoding plainly together");
  flags.text("--floors", "FILE", given.floors,
             "what every arm must reach by category, noise of repeats allowed for, or exit 1; JSON "
             "such as "
             "{\"speedup\": {\"*\": 0.98, \"code\": 1.5}, \"tokens_per_round\": {\"chat\": 2}}");
  flags.flag("--price", given.price,
             "also what exactness costs: passes of 1 to 8 rows in turns with --kernels wide");
  flags.flag("--quick", given.quick, "two prompts of each category, 48 tokens, once");
  flags.flag("--strict", given.strict,
             "exit status 1 where the machine is too busy to measure on, intervals are too wide, "
             "or two arms did the same");
  flags.group("Output");
  given.json.add_flag(flags);
  given.html.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("bench", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = check_flags(given); !ok) return fail("bench", ok.error());
  const auto sources = read_prompts(given);
  if (!sources) return fail("bench", sources.error());
  const auto scripts = given.spec.read_scripts(sources->size());
  if (!scripts) return fail("bench", scripts.error());

  const auto floors = read_floors(given, *sources);
  if (!floors) return fail("bench", floors.error());

  catch_interrupts();
  const auto engine = given.model.open(given.spec.head_choice(), given.spec.store_choice());
  if (!engine) return fail("bench", engine.error());
  if (engine->context() <= measure::PassCosts::kMostRows)
    return fail("bench", {ErrorCode::BadUsage,
                          fmt::format("a context of {} tokens is too short to time passes of {} "
                                      "rows in; give --context {} or more",
                                      engine->context(), measure::PassCosts::kMostRows,
                                      measure::PassCosts::kMostRows + 1)});
  const auto prompts = given.prompts.encode(*sources, *engine);
  if (!prompts) return fail("bench", prompts.error());
  const auto requests = bench_requests(given, *prompts, *scripts);
  for (const measure::BenchPrompt& prompt : requests) {
    if (auto ok = check_request(*engine, prompt.request); !ok) return fail("bench", ok.error());
  }
  print_warnings(*engine);
  Json report = report_header("bench", given.model, *engine, given.spec.drafter_name());
  report["prompts_sha256"] = sha256_of_prompts(*prompts);
  report["sampling"] = sampling_json(given.decode.sampling);
  report["ignore_eos"] = given.decode.ignore_eos;
  settle_gate(*engine, given.spec, report);
  const measure::MachineWatch watch;
  if (given.strict) {
    add_machine_checks(watch.use(), report);
    if (!passes_strictly(report)) {
      report["complete"] = false;
      report["arms"] = Json::array();
      if (auto written = write_report(given, report); !written)
        return fail("bench", written.error());
      return kExitCheckFailed;
    }
  }

  ProgressLine progress;
  measure::BenchOptions options;
  options.arms = given.spec.arms;
  options.drafter = given.spec.kind();
  options.repeats = given.repeats;
  options.seconds = given.seconds;
  options.pass_repeats = given.quick ? 7 : 21;
  options.seed = given.model.seed;
  options.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  options.stop = interrupted;
  const auto result = measure::run_bench(*engine, requests, options);
  progress.clear();
  if (!result) {
    if (result.error().code == ErrorCode::Interrupted) {
      report["interrupted"] = true;
      report["complete"] = false;
      report["arms"] = Json::array();
      if (auto written = write_report(given, report); !written)
        return fail("bench", written.error());
    }
    return fail("bench", result.error());
  }

  report["prompts"] = prompts->size();
  report["repeats"] = given.repeats;
  report["max_tokens"] = given.decode.max_tokens;
  report["interrupted"] = interrupted();
  add_bench_json(*result, report);
  add_bench_checks(*result, watch.use(), report);
  if (!given.json.is_stdout()) print_bench_table(report, *result);
  bool same = result->identical;
  bool floors_hold = true;
  if (given.floors) {
    const auto held = hold_floors(*floors, *result);
    floors_hold = std::ranges::all_of(held, &HeldFloor::holds);
    report["floors"] = floors_json(held);
    if (!given.json.is_stdout()) print_floors(held);
  }
  if (!given.batch.empty() && !interrupted()) {
    const auto batches = bench_batches(given, *engine, requests, progress);
    progress.clear();
    if (!batches && batches.error().code != ErrorCode::Interrupted)
      return fail("bench", batches.error());
    if (batches) {
      report["batch"] = batch_json(*batches);
      if (!given.json.is_stdout()) print_batches(*batches);
      same = same && batches->identical;
    }
    report["interrupted"] = interrupted();
  }
  if (given.price && !interrupted()) {
    const auto price = bench_price(given, *engine, progress);
    progress.clear();
    if (!price && price.error().code != ErrorCode::Interrupted) return fail("bench", price.error());
    if (price) {
      report["price_of_exactness"] = price_json(*price);
      if (!given.json.is_stdout()) print_price(*price);
    }
    report["interrupted"] = interrupted();
  }
  if (auto written = write_report(given, report); !written) return fail("bench", written.error());
  if (interrupted()) {
    say(stderr, "interrupted\n");
    return kExitInterrupted;
  }
  const bool good = floors_hold && (!given.strict || passes_strictly(report));
  return same && good ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
