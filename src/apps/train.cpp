// paceline train: teaches a draft head on a dump.
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <optional>

#include "apps/commands.h"
#include "apps/dump_flags.h"
#include "apps/html_file.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/say.h"
#include "apps/terminal.h"
#include "apps/train_flags.h"
#include "apps/train_promotion.h"
#include "apps/values.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "engine/head_search.h"
#include "io/dump.h"
#include "io/shown.h"
#include "models/draft_head.h"
#include "spec/dump_text.h"
#include "train/plot.h"
#include "train/tap_check.h"
#include "train/trainer.h"

namespace paceline::apps {
namespace {

struct StartHead {
  HeadTensors tensors;
  bool in_place = false;       // read from where the run writes
  bool in_checkpoint = false;  // read from the trunk's own files
  std::string sha256 = {};
};

// The n most frequent words; of all those that occur, where n is 0.
std::vector<TokenId> shortlist_of(int n, const Engine& engine, const train::TrainingData& data) {
  const int vocab_size = engine.model().info().vocab_size;
  return data.shortlist(n > 0 ? n : vocab_size, engine.end_ids(), vocab_size);
}

// The head that the run begins with.
Result<StartHead> start_head(const TrainFlags& given, const Engine& engine,
                             const std::string& model, const train::TrainingData& data) {
  if (!given.fresh) {
    const auto checkpoint = Checkpoint::open(model);
    if (!checkpoint) return checkpoint.error();
    HeadSearch search = find_head(*checkpoint, given.head.value_or(""));
    if (search.found) {
      if (given.shortlist >= 0)
        search.found->tensors.config.draft_vocabulary = shortlist_of(given.shortlist, engine, data);
      std::error_code ignored;
      return StartHead{.tensors = std::move(search.found->tensors),
                       .in_place = std::filesystem::equivalent(search.found->file,
                                                               given.trained_file(), ignored),
                       .in_checkpoint = search.found->in_checkpoint,
                       .sha256 = search.found->sha256};
    }
    if (search.fault) return *search.fault;
    return Error{ErrorCode::NotFound,
                 fmt::format("no head for this trunk in {}; name one to fine-tune with --head, or "
                             "begin one with --new",
                             listed(search.places, 8))};
  }
  const DumpHeader& header = data.dump().header();
  HeadConfig config;
  config.tap = given.tap >= 0 ? static_cast<Tap>(given.tap) : header.tap;
  config.tap_type = header.type;
  config.modules = given.modules;
  config.depths = given.train.depths;
  config.draft_vocabulary = shortlist_of(given.shortlist, engine, data);
  config.family = engine.model().info().family;
  const auto trunk = train::TrunkSide::of(engine.model());
  if (!trunk) return trunk.error();
  return StartHead{.tensors = trunk->new_head(config, given.train.seed)};
}

// The head that a promoted one must beat: the one that the run begins with or, where that is new,
// the one that is found for the trunk.
Result<HeadTensors> head_to_beat(const TrainFlags& given, const Engine& engine,
                                 const std::string& model, const DumpHeader& dump,
                                 const HeadTensors& start) {
  if (!given.fresh) return start;
  const auto checkpoint = Checkpoint::open(model);
  if (!checkpoint) return checkpoint.error();
  HeadSearch search = find_head(*checkpoint, {});
  if (!search.found) return start;
  const std::string name = shown_path(search.found->file);
  auto usable = check_tap(dump, search.found->tensors.config);
  if (usable)
    if (auto made = engine.model().make_head(search.found->tensors); !made) usable = made.error();
  if (!usable)
    return Error{usable.error().code,
                 fmt::format("--promote: {}, the head that is found, cannot be "
                             "compared: {}",
                             name, usable.error().message)};
  return std::move(search.found->tensors);
}

std::string shares(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", value);
  return text;
}

std::string time_left(double seconds) {
  const auto minutes = static_cast<int64_t>(seconds / 60);
  if (minutes >= 60) return fmt::format("{} h {} min left", minutes / 60, minutes % 60);
  return minutes > 0 ? fmt::format("{} min left", minutes)
                     : fmt::format("{} s left", static_cast<int>(seconds));
}

// A line that is written over on a terminal, and a line a minute elsewhere.
class Progress {
 public:
  void show(const train::TrainProgress& now) {
    const bool terminal = stderr_is_terminal();
    if (shown_ != 0 && now.seconds_left > shown_ - (terminal ? 0.2 : 60)) return;
    shown_ = now.seconds_left;
    std::string text = fmt::format("step {}, loss {:.3f}, {:.0f} position-depths/s", now.step,
                                   now.loss, now.position_depths_per_second);
    if (now.last != nullptr) text += fmt::format(", E {:.3f}", now.last->expected);
    text += ", " + time_left(now.seconds_left);
    if (terminal)
      line_.show(text);
    else
      say(stderr, "{}\n", text);
  }
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  double shown_ = 0;
};

Json entry_json(const train::HistoryEntry& entry) { return train::to_json(entry); }

// Of the best head, by the length of the answers.
Json by_length_json(const train::TrainReport& report) {
  Json rows = Json::array();
  for (size_t i = 0; i < report.by_length.size(); ++i) {
    const RoundCounts& counts = report.by_length[i];
    rows.push_back({{"from_tokens", train::kLengths[i]},
                    {"rounds", counts.rounds},
                    {"joint_acceptance", train::joint_acceptance(counts)}});
  }
  return rows;
}

Json report_json(const train::TrainReport& report) {
  Json history = Json::array();
  for (const train::HistoryEntry& entry : report.history) history.push_back(entry_json(entry));
  return {{"steps", report.steps},
          {"positions", report.positions},
          {"baseline", entry_json(report.baseline)},
          {"best", entry_json(report.best)},
          {"history", std::move(history)},
          {"seconds", report.seconds},
          {"end", train::to_string(report.end)},
          {"by_length", by_length_json(report)},
          {"skipped_steps", report.skipped},
          {"distance_to_serving", report.distance},
          {"drafts_compared", report.drafts_compared},
          {"products", report.table}};
}

Json data_json(const train::TrainingData& data, const HeadConfig& head) {
  const train::DataFacts& facts = data.facts();
  return {{"positions", facts.positions},
          {"held_out", facts.held_out},
          {"cycle_rows", facts.cycle_rows},
          {"bad_rows", facts.bad_rows},
          {"dropped_bytes", data.dump().dropped_bytes()},
          {"own_share", facts.own_share()},
          {"draft_vocabulary", head.draft_vocabulary.size()},
          {"coverage", data.coverage(head.draft_vocabulary)},
          {"sha256", head.data_sha256}};
}

Json options_json(const TrainFlags& given) {
  const train::TrainOptions& o = given.train;
  constexpr const char* kTargets[] = {"soft", "hard", "mixed"};
  return {{"new", given.fresh},
          {"judge", given.judge ? Json(*given.judge) : Json(nullptr)},
          {"depths", o.depths},
          {"beta", o.beta},
          {"dpace", o.dpace >= 0 ? Json(o.dpace) : Json(nullptr)},
          {"mask", o.mask == train::Mask::Served ? "served" : "recipe"},
          {"targets", kTargets[static_cast<int>(o.targets)]},
          {"first_depth", o.first_depth_share},
          {"prompt_rows", given.data.prompt_rows},
          {"lr", o.rate},
          {"warmup", o.warmup},
          {"weight_decay", o.optimiser.decay},
          {"clip", o.optimiser.clip},
          {"average", o.optimiser.average},
          {"batch", o.batch},
          {"max_rows", given.data.max_rows},
          {"steps", o.steps},
          {"minutes", o.minutes},
          {"seed", o.seed}};
}

}  // namespace

int train(Args args) {
  ModelFlags model;
  TrainFlags given;
  JsonFile json;
  HtmlFile html;
  Flags flags("train", "Teach a draft head on a dump, judged as it will be served.",
              "paceline train model.gguf --dump dump --out head.safetensors --new --minutes 60");
  model.add(flags);
  given.add(flags);
  flags.group("Output");
  json.add_flag(flags);
  html.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("train", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = given.finish(model.model); !ok) return fail("train", ok.error());
  std::vector<std::string> files = {model.model, *given.dump, *given.out};
  if (given.head) files.push_back(*given.head);
  if (given.judge) files.push_back(*given.judge);
  if (auto ok = check_outputs({json.file(), html.file()}, files); !ok)
    return fail("train", ok.error());
  given.train.seed = model.seed;

  catch_interrupts();
  // A file of records does not say how wide its hiddens are; a dump is looked at first.
  std::error_code ignored;
  const bool records = std::filesystem::is_regular_file(*given.dump, ignored);
  std::optional<Result<Dump>> dump;
  if (!records) dump = Dump::open(*given.dump);
  if (dump && !*dump) return fail("train", dump->error());
  std::optional<Result<Dump>> judge;
  if (given.judge) judge = Dump::open(*given.judge);
  if (judge && !*judge) return fail("train", judge->error());
  if (judge && records)
    return fail("train", {ErrorCode::BadUsage,
                          fmt::format("{}: a file of records does not say whose prompts it holds, "
                                      "and so not whether those of --judge are among them; train "
                                      "on the dump",
                                      shown_path(*given.dump))});
  const auto engine = model.open();
  if (!engine) return fail("train", engine.error());
  if (records) dump = open_records(*given.dump, engine->model().info().dim);
  if (!*dump) return fail("train", dump->error());
  const auto trunk = train::TrunkSide::of(engine->model());
  if (!trunk) return fail("train", trunk.error());
  const DumpHeader& header = (**dump).header();
  const int n_words = engine->model().info().vocab_size;
  if (!records) {
    if (auto ok = check_dump_is_of(*engine, header, shown_path(*given.dump)); !ok)
      return fail("train", ok.error());
  } else if (header.vocab_size > n_words) {
    return fail("train", {ErrorCode::BadUsage,
                          fmt::format("{}: has the token {}, and the trunk knows {} words",
                                      shown_path(*given.dump), header.vocab_size - 1, n_words)});
  }
  given.train.cache = engine->cache_type();
  const auto data = train::TrainingData::of(**dump, given.data, *trunk->kernels().pool);
  if (!data) return fail("train", data.error());
  auto start = start_head(given, *engine, model.model, *data);
  if (!start) return fail("train", start.error());
  train::TrainInputs inputs{&engine->model(),     &*data,       std::move(start->tensors),
                            given.trained_file(), given.resume, start->in_place,
                            start->sha256};
  HeadConfig& config = inputs.start.config;
  // A head in the checkpoint goes with it, wherever it was trained.
  if (config.trunk_sha256.empty() || start->in_checkpoint)
    config.trunk_sha256 = engine->model_sha256();
  if (config.trunk_sha256 != engine->model_sha256())
    return fail("train", {ErrorCode::BadUsage, "the head was made for another trunk (SHA-256 " +
                                                   config.trunk_sha256.substr(0, 12) + "...)"});
  config.family = engine->model().info().family;
  config.numerics = engine->model().info().numerics;
  config.data_sha256 = data->sha256();
  if (auto ok = train::check_inputs(inputs, given.train); !ok) return fail("train", ok.error());
  if (!records) {
    const auto ok = train::check_dumped_hiddens(engine->model(), **dump, engine->cache_type());
    if (!ok) return fail("train", ok.error());
  }
  std::optional<HeadTensors> before;
  if (given.promote) {
    auto found = head_to_beat(given, *engine, model.model, header, inputs.start);
    if (!found) return fail("train", found.error());
    before = *std::move(found);
  }
  train::EvaluationPlan over;
  if (judge) {
    auto plan = plan_promotion(*engine, **dump, **judge, shown_path(*given.judge),
                               std::array<const HeadConfig*, 2>{&config, &before->config},
                               given.train.depths);
    if (!plan) return fail("train", plan.error());
    over = *std::move(plan);
    warn_of_dropped_bytes(**judge, shown_path(*given.judge));
  } else if (before) {
    over = plan_promotion(*engine, *data, given.train.depths);
  }

  print_warnings(*engine);
  warn_of_dropped_bytes(**dump, shown_path(*given.dump));
  Json report = report_header("train", model, *engine, "mtp");
  const train::DataFacts& facts = data->facts();
  say(stderr, "{} positions to train on, {} held out; {} words drafted, {:.1f} % of the text\n",
      facts.positions, facts.held_out,
      config.draft_vocabulary.empty() ? engine->model().info().vocab_size
                                      : static_cast<int>(std::ssize(config.draft_vocabulary)),
      100 * data->coverage(config.draft_vocabulary));
  if (facts.own_tokens > 0)
    say(stderr, "{:.1f} % of the tokens are the trunk's own first choice\n",
        100 * facts.own_share());

  Progress progress;
  const train::TrainHooks hooks = {
      .stop = interrupted,
      .progress = [&](const train::TrainProgress& now) { progress.show(now); },
      .evaluated =
          [&](const train::HistoryEntry& entry, bool best) {
            progress.clear();
            say(stderr,
                "step {:6}: loss {:.3f}, held out {:.3f}; hits {}, held out {}; accepted {}, "
                "E {:.3f}{}\n",
                entry.step, entry.loss, entry.held_out_loss, shares(entry.training_hits),
                shares(entry.held_out_hits), shares(entry.joint), entry.expected,
                best ? " (best)" : "");
          },
      .warn =
          [&](const std::string& text) {
            progress.clear();
            warn(text);
          },
      .say = [&](const std::string& text) { say(stderr, "{}\n", text); }};
  const auto result = train::train(inputs, given.train, hooks);
  progress.clear();
  if (!result) return fail("train", result.error());

  const std::string plot = *given.out + ".svg";
  if (auto drawn = train::write_plot(plot, result->history); !drawn)
    return fail("train", drawn.error());
  say(stderr,
      "{}: {} steps, {} position-depths, {:.0f} s ({}); E {:.3f} at the start, {:.3f} at step {}\n",
      inputs.out.string(), result->steps, result->positions, result->seconds,
      train::to_string(result->end), result->baseline.expected, result->best.expected,
      result->best.step);
  if (result->end == train::TrainEnd::Interrupted)
    say(stderr, "interrupted; the same command with --resume goes on where it was stopped\n");
  const bool interrupted_run = result->end == train::TrainEnd::Interrupted;
  bool promoted = true;
  std::string written = given.trained_file();
  if (before && !interrupted_run) {
    const auto judged = judge_head(*engine, over, *before, inputs.out, given.train.seed);
    if (!judged) return fail("train", judged.error());
    promoted = judged->promoted;
    say(stderr, "{}\n", judged->sentence);
    written = promoted ? *given.out : *given.out + ".rejected";
    if (auto moved = move_file(inputs.out, written); !moved) return fail("train", moved.error());
    report["promotion"] = judged->json;
  }
  const auto head_file = MappedFile::open(written);
  if (!head_file) return fail("train", head_file.error());
  report["head_sha256"] = sha256(head_file->bytes());
  report["prompts_sha256"] = records ? Json() : Json(header.prompts_sha256);
  report["head"] = written;
  report["options"] = options_json(given);
  report["data"] = data_json(*data, config);
  report.update(report_json(*result));
  if (auto ok = json.write(report); !ok) return fail("train", ok.error());
  if (auto ok = html.write(report); !ok) return fail("train", ok.error());
  if (interrupted_run) return kExitInterrupted;
  if (result->end == train::TrainEnd::NotFinite) {
    say(stderr,
        "the run ended early: loss or gradient was not finite in several steps in a row; {} holds "
        "the head of step {}; a lower --lr or --clip may help\n",
        written, result->best.step);
    return kExitCheckFailed;
  }
  return promoted ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
