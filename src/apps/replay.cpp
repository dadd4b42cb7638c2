// paceline replay: walks the rounds over a dump's streams again, without the trunk, and counts what
// a live run counts.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "apps/commands.h"
#include "apps/dump_flags.h"
#include "apps/generate_report.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/promotion_report.h"
#include "apps/say.h"
#include "apps/spec_flags.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "engine/head_search.h"
#include "io/dump.h"
#include "io/shown.h"
#include "models/head_check.h"
#include "spec/dump_text.h"

namespace paceline::apps {
namespace {

struct ReplayFlags {
  ModelFlags model;
  SpecFlags spec;
  JsonFile json;
  std::optional<std::string> dump;
  std::optional<std::string> against;
  bool cycles = false;
  int limit = std::numeric_limits<int>::max();
};

struct ArmCounts {
  DraftShape shape;
  HeadRounds rounds;
  std::map<std::string, RoundCounts> by_category;
};

// One arm over all streams; lookup and store run on all threads at once, a head's kernels do.
Result<ArmCounts> run_arm(const ReplayFlags& given, const Engine& engine, const Dump& dump,
                          const DraftShape& shape, ProgressLine& progress) {
  const int n_streams = std::min(dump.size(), given.limit);
  Request request;
  request.depth = shape.depth;
  request.tree = shape.tree;
  request.drafter = given.spec.kind();
  std::vector<RoundCounts> counts(static_cast<size_t>(n_streams));
  std::vector<std::optional<Error>> faults(static_cast<size_t>(n_streams));
  std::atomic<int> next = 0;
  const auto work = [&](bool shows) {
    for (int i = next++; i < n_streams && !interrupted(); i = next++) {
      if (shows)
        progress.show(fmt::format("replaying, depth {}", shape_name(shape)),
                      static_cast<double>(i) / n_streams);
      const auto text = recorded_text(dump.stream(i), given.cycles);
      if (!text) continue;
      auto counted = engine.replay(*text, request);
      if (counted)
        counts[static_cast<size_t>(i)] = std::move(*counted);
      else
        faults[static_cast<size_t>(i)] = counted.error();
    }
  };
  if (shape.depth == kAutoDepth) engine.costs();  // measured before anything else runs
  std::vector<std::thread> others;
  const int n_threads = engine.head() == nullptr ? engine.threads() : 1;
  for (int t = 1; t < n_threads; ++t) others.emplace_back(work, false);
  work(true);
  for (std::thread& other : others) other.join();
  progress.clear();

  ArmCounts arm{.shape = shape, .rounds = {}, .by_category = {}};
  arm.rounds.all.begin(shape.depth == kAutoDepth ? kMaxDepth : shape.depth);
  for (int i = 0; i < n_streams; ++i) {
    const auto at = static_cast<size_t>(i);
    if (faults[at]) return *faults[at];
    const DumpStream stream = dump.stream(i);
    arm.rounds.add(stream, counts[at]);
    arm.by_category[std::string(stream.category)].add(counts[at]);
  }
  return arm;
}

Json share(int64_t part, int64_t of) {
  return of > 0 ? Json(static_cast<double>(part) / static_cast<double>(of)) : Json(nullptr);
}

Json counts_json(const RoundCounts& counts) {
  Json joint = Json::array();
  Json conditional = Json::array();
  int64_t before = counts.rounds;
  for (size_t d = 0; d < counts.accepted_by_depth.size(); ++d) {
    const bool drafted = counts.drafted_by_depth[d] > 0;
    joint.push_back(drafted ? share(counts.accepted_by_depth[d], counts.rounds) : Json(nullptr));
    conditional.push_back(drafted ? share(counts.accepted_by_depth[d], before) : Json(nullptr));
    before = counts.accepted_by_depth[d];
  }
  return Json{{"rounds", counts.rounds},
              {"round_tokens", counts.round_tokens},
              {"proposed", counts.proposed},
              {"drafted", counts.drafted},
              {"rows", counts.drafted + counts.rounds},
              {"calibration", calibration_json(counts)},
              {"drafted_by_depth", counts.drafted_by_depth},
              {"accepted_by_depth", counts.accepted_by_depth},
              {"drafted_by_source", by_source_json(counts.drafted_by_source)},
              {"accepted_by_source", by_source_json(counts.accepted_by_source)},
              {"joint_acceptance", std::move(joint)},
              {"conditional_acceptance", std::move(conditional)},
              {"expected", counts.rounds > 0 ? Json(counts.expected()) : Json(nullptr)},
              {"tokens_per_round", share(counts.round_tokens, counts.rounds)}};
}

Json arm_json(const ArmCounts& arm) {
  Json json = {{"depth", depth_json(arm.shape)}, {"tree", tree_json(arm.shape)}};
  json.update(counts_json(arm.rounds.all));
  Json by_category = Json::object();
  for (const auto& [category, counts] : arm.by_category)
    by_category[category] = counts_json(counts);
  json["by_category"] = std::move(by_category);
  return json;
}

void print_arm(const ArmCounts& arm) {
  const RoundCounts& counts = arm.rounds.all;
  say("depth {:<5}{:8} rounds  {:.3f} tokens/round  accepted by depth", shape_name(arm.shape),
      counts.rounds, counts.tokens_per_round());
  for (const int64_t accepted : counts.accepted_by_depth)
    say(" {:.3f}", counts.rounds > 0
                       ? static_cast<double>(accepted) / static_cast<double>(counts.rounds)
                       : 0.0);
  for (size_t i = 0; i < counts.drafted_by_source.size(); ++i) {
    if (counts.drafted_by_source[i] == 0) continue;
    say("; {} {} of {}", to_string(static_cast<DraftSource>(i)), counts.accepted_by_source[i],
        counts.drafted_by_source[i]);
  }
  say("\n");
}

Result<void> check_flags(ReplayFlags& given) {
  if (!given.dump || given.dump->empty())
    return Error{ErrorCode::BadUsage, "--dump is missing: the folder that collect wrote"};
  if (auto ok = given.spec.check(); !ok) return ok;
  const DrafterKind kind = given.spec.kind();
  if (kind == DrafterKind::Scripted)
    return Error{ErrorCode::BadUsage, "--drafter scripted is for generate only"};
  if (given.against && given.against->empty())
    return Error{ErrorCode::BadUsage, "--against wants a head, or a folder that holds one, not ''"};
  if (given.against && (kind == DrafterKind::None || kind == DrafterKind::Lookup))
    return Error{ErrorCode::BadUsage,
                 fmt::format("--against compares heads, and --drafter {} asks none",
                             given.spec.drafter_name())};
  std::vector<std::string> inputs = given.spec.files();
  if (given.against) inputs.push_back(*given.against);
  inputs.insert(inputs.end(), {*given.dump, given.model.model});
  return check_outputs({given.json.file()}, inputs);
}

// The head that --against names, by its file or by the folder that holds it.
Result<FoundHead> find_other_head(const std::string& name, const std::string& model) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(name, ignored);
  const auto checkpoint = Checkpoint::open(is_folder ? name : model);
  if (!checkpoint) return checkpoint.error();
  HeadSearch search = find_head(*checkpoint, is_folder ? "" : name);
  if (search.fault) return *search.fault;
  if (is_folder && !(search.found && search.found->in_checkpoint))
    return Error{ErrorCode::NotFound, shown_path(name) + ": no mtp.* tensors in this folder"};
  return *std::move(search.found);
}

// The same, found to fit before an arm is walked.
Result<FoundHead> open_other_head(const ReplayFlags& given, const Engine& engine,
                                  const Dump& dump) {
  if (engine.head() == nullptr) return Error{ErrorCode::NotFound, engine.no_head()};
  auto other = find_other_head(*given.against, given.model.model);
  if (!other) return other;
  const std::string name = shown_path(*given.against);
  const HeadConfig& config = other->tensors.config;
  auto fits = check_tap(dump.header(), config);
  if (fits)
    if (auto made = engine.model().make_head(other->tensors); !made) fits = made.error();
  if (!fits) return Error{fits.error().code, name + ": " + fits.error().message};
  if (const auto warning = another_trunk(config, engine.model_sha256(), name); !warning.empty())
    warn(warning);
  return other;
}

// Every arm again with the other head, and whether the first one is better; into the report and its
// arms. False where it is not, at some arm. At depth auto both go by the costs of the first.
Result<bool> run_against(const ReplayFlags& given, Engine& engine, const Dump& dump,
                         const FoundHead& other, const std::vector<ArmCounts>& arms, Json& report) {
  if (auto ok = engine.use_head(other.tensors); !ok) return ok.error();
  report["against"] = *given.against;
  report["against_sha256"] = other.sha256;

  bool better = true;
  ProgressLine progress;
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto before = run_arm(given, engine, dump, arms[i].shape, progress);
    if (!before) return before.error();
    if (interrupted()) return better;
    const auto verdict = verdict_of(before->rounds, arms[i].rounds, given.model.seed);
    if (!verdict) return verdict.error();
    better = better && verdict->promoted;
    report["arms"][i]["against"] = arm_json(*before);
    report["arms"][i]["promotion"] = verdict->json;
    if (i == 0) report["promotion"] = verdict->json;
    if (given.json.is_stdout()) continue;
    say("against {}\n", shown_path(*given.against));
    print_arm(*before);
    say("{}{}\n", verdict->table, verdict->sentence);
  }
  return better;
}

}  // namespace

int replay(Args args) {
  ReplayFlags given;
  Flags flags("replay", "Count over a dump what drafts would have stood, without the trunk.",
              "paceline replay model.gguf --dump dump --depth 4");
  given.model.add(flags);
  flags.group("Record");
  flags.text("--dump", "FOLDER", given.dump, "what collect or generate --dump wrote");
  flags.flag("--cycles", given.cycles,
             "walk through short cycles at the end of answers too; they are cut off by default");
  flags.integer("--limit", given.limit, 1, std::numeric_limits<int>::max(),
                "take the first N streams only");
  flags.text("--against", "HEAD", given.against,
             "walk them with this head too, a file or a folder that holds it, and tell whether the "
             "other one is better beyond chance and in no category worse; exit status 1 where it "
             "is not");
  given.spec.add(flags, "several arms one after another, such as 4,8,8:15", {{.depth = 4}});
  flags.group("Output");
  given.json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("replay", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = check_flags(given); !ok) return fail("replay", ok.error());
  const auto dump = Dump::open(*given.dump);
  if (!dump) return fail("replay", dump.error());

  if (dump->size() == 0)
    return fail("replay", {ErrorCode::BadFormat,
                           fmt::format("{}: it holds no whole stream", shown_path(*given.dump))});

  catch_interrupts();
  auto engine = given.model.open(given.spec.head_choice(), given.spec.store_choice());
  if (!engine) return fail("replay", engine.error());
  if (auto ok = check_dump_is_of(*engine, dump->header(), shown_path(*given.dump)); !ok)
    return fail("replay", ok.error());
  if (engine->head() != nullptr)
    if (auto ok = check_tap(dump->header(), engine->head()->info.config); !ok)
      return fail("replay", ok.error());
  std::optional<Result<FoundHead>> other;
  if (given.against) other = open_other_head(given, *engine, *dump);
  if (other && !*other) return fail("replay", other->error());
  print_warnings(*engine);
  warn_of_dropped_bytes(*dump, shown_path(*given.dump));
  Json report = report_header("replay", given.model, *engine, given.spec.drafter_name());
  report["prompts_sha256"] = dump->header().prompts_sha256;
  report["dump"] = *given.dump;
  report["dropped_bytes"] = dump->dropped_bytes();
  report["streams"] = std::min(dump->size(), given.limit);
  report["cycles"] = given.cycles;

  std::vector<ArmCounts> arms;
  report["arms"] = Json::array();
  ProgressLine progress;
  const auto start = std::chrono::steady_clock::now();
  for (const DraftShape& shape : given.spec.arms) {
    auto arm = run_arm(given, *engine, *dump, shape, progress);
    if (!arm) return fail("replay", arm.error());
    if (interrupted()) break;
    if (!given.json.is_stdout()) print_arm(*arm);
    if (arms.empty()) report.update(counts_json(arm->rounds.all));
    report["arms"].push_back(arm_json(*arm));
    arms.push_back(*std::move(arm));
  }
  bool better = true;
  if (other && !interrupted()) {
    const auto compared = run_against(given, *engine, *dump, **other, arms, report);
    if (!compared) return fail("replay", compared.error());
    better = *compared;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report["seconds"] = seconds.count();
  report["interrupted"] = interrupted();
  if (interrupted()) say(stderr, "interrupted\n");
  if (auto written = given.json.write(report); !written) return fail("replay", written.error());
  if (interrupted()) return kExitInterrupted;
  return better ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
