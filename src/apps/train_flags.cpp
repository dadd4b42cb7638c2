#include "apps/train_flags.h"

#include <fmt/core.h>

#include <limits>
#include <utility>
#include <vector>

#include "apps/output_path.h"
#include "apps/values.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

void number(Flags& flags, const std::string& name, double& field, double lowest, double highest,
            const std::string& help) {
  flags.value(
      name, "X",
      [&field, lowest, highest](std::string_view given) -> Result<void> {
        const auto value = parse_number(given, lowest, highest);
        if (!value) return value.error();
        field = *value;
        return {};
      },
      help);
}

Result<std::vector<train::Part>> parse_parts(std::string_view given) {
  std::vector<train::Part> parts;
  while (!given.empty()) {
    const size_t comma = std::min(given.find(','), given.size());
    const std::string_view name = given.substr(0, comma);
    if (name == "fc")
      parts.push_back(train::Part::Merge);
    else if (name == "norms")
      parts.push_back(train::Part::Norms);
    else if (name == "layer")
      parts.push_back(train::Part::Layer);
    else
      return wants("parts out of fc, norms, layer, with commas between", quoted_name(name));
    given.remove_prefix(std::min(comma + 1, given.size()));
  }
  return parts;
}

}  // namespace

void TrainFlags::add(Flags& flags) {
  flags.group("Head");
  flags.text("--dump", "DUMP", dump,
             "what to train on: a folder as collect writes it, or a file of records");
  flags.text("--out", "HEAD", out, "where the best head goes (.safetensors)");
  flags.flag("--new", fresh, "begin a new head; without it one is fine-tuned");
  flags.text("--head", "FILE", head,
             "the head to fine-tune (default: the one that is found for the trunk)");
  flags.integer("--modules", modules, 1, kMostHeadModules,
                "modules of a new head; the last serves all further depths (default: 1)");
  flags.integer("--shortlist", shortlist, 0, std::numeric_limits<int>::max(),
                "words that the head scores: the most frequent of the dump; 0: all (default: 8192 "
                "of a new head; one that is fine-tuned keeps its own)");
  flags.choice("--tap", {"after", "before"}, tap,
               "hidden that a new head reads, after or before the trunk's final norm (default: as "
               "in the dump)");
  flags.flag("--resume", resume, "go on with the run that was interrupted");
  flags.flag("--promote", promote,
             "keep the head only if it is better beyond chance, on all held-out answers and worse "
             "in no category, than the one it began with or, with --new, the one found for the "
             "trunk; till then it lies in HEAD.candidate, and if it is not, in HEAD.rejected");
  flags.text("--judge", "DUMP", judge,
             "with --promote: both heads are judged over all streams of this dump, an evaluation "
             "set that the training dump shares no id and no prompt with, in place of the held-out "
             "answers");

  flags.group("Training");
  flags.integer("--depths", train.depths, 1, train::kMostDepths,
                "depths that are trained and walked in evaluation (default: 4)");
  number(flags, "--beta", train.beta, 0.01, 2, "depth s weighs beta^(s-1) (default: 0.6)");
  number(flags, "--dpace", train.dpace, 0, 1,
         "weigh depths by what limits the expected length (D-PACE), smoothed by X, say 0.5, in "
         "place of --beta");
  flags.choice("--mask", {"served", "recipe"}, mask_,
               "what deeper rows attend to: keys of depth 1 and their own chain, as when serving "
               "(default), or keys of their own depth");
  flags.choice("--targets", {"soft", "hard", "mixed"}, targets_,
               "the trunk's own probabilities (default), the token that followed, or half of each");
  flags.flag("--no-prompt-rows", skips_prompts, "leave out rows whose target stands in the prompt");
  number(flags, "--first-depth", train.first_depth_share, 0, 1,
         "share of the run in which depth 1 is trained alone (default: 0.3)");
  flags.value(
      "--freeze", "PARTS",
      [this](std::string_view given) -> Result<void> {
        auto parts = parse_parts(given);
        if (!parts) return parts.error();
        train.freeze = *parts;
        return {};
      },
      "parts that stay as they are: fc, norms, layer");
  number(flags, "--lr", rate_, 0, 1, "learning rate at its peak (default: 0.001)");
  flags.integer("--warmup", warmup_, 0, 1'000'000, "steps until it is there (default: 50)");
  number(flags, "--weight-decay", decay_, 0, 1, "of matrices, times the rate (default: 0.01)");
  number(flags, "--clip", clip_, 0, 1e6, "largest norm of a gradient; 0: any (default: 1)");
  number(flags, "--average", average_, 0, 0.999999,
         "evaluate and keep a moving average of the weights with this memory (default: 0, none)");
  flags.integer("--batch", train.batch, 1, 4096,
                "pieces of streams in a step, of 512 rows at most (default: 8)");
  flags.integer("--max-rows", data.max_rows, 2, 8192, "rows of a piece (default: 512)");
  flags.integer("--steps", steps_, 1, std::numeric_limits<int>::max(), "steps, and then the end");
  number(flags, "--minutes", train.minutes, 0.001, 1e6, "minutes, and then the end");
  flags.integer("--evaluate-every", every_, 1, std::numeric_limits<int>::max(),
                "steps between evaluations (default: sixteen a run)");
  flags.integer("--evaluation-tokens", evaluation_tokens_, 1, std::numeric_limits<int>::max(),
                "tokens of held-out answers that an evaluation walks (default: 6000)");
  flags.choice("--products", {"auto", "f32", "bf16"}, products_,
               "what training multiplies (default: bf16 where the machine has it)");
}

Result<void> TrainFlags::finish(const std::string& model) {
  const auto missing = [](const char* what) {
    return Error{ErrorCode::BadUsage, std::string(what) + " is missing"};
  };
  if (!dump || dump->empty()) return missing("--dump DUMP, what to train on,");
  if (!out || out->empty()) return missing("--out HEAD, where the head goes,");
  if (steps_ == 0 && train.minutes == 0) return missing("an end of the run, --steps or --minutes,");
  if (head && head->empty()) return Error{ErrorCode::BadUsage, "--head wants the name of a file"};
  if (fresh && head)
    return Error{ErrorCode::BadUsage,
                 "--new begins a new head and --head names one: give one of "
                 "the two"};
  if (judge && judge->empty())
    return Error{ErrorCode::BadUsage, "--judge wants the folder of a dump"};
  if (judge && !promote)
    return Error{ErrorCode::BadUsage,
                 "--judge says over what a head is to be promoted, and goes with --promote"};
  for (const auto& [flag, is_given] : {std::pair("--modules", modules >= 0), {"--tap", tap >= 0}})
    if (is_given && !fresh)
      return Error{ErrorCode::BadUsage, fmt::format("{} is of a new head and goes with --new; one "
                                                    "that is fine-tuned stays as it is",
                                                    flag)};
  if (modules < 0) modules = 1;
  if (fresh && shortlist < 0) shortlist = 8192;
  std::vector<std::string> inputs = {model, *dump};
  if (judge) inputs.push_back(*judge);
  for (const std::string& file : {*out, trained_file()})
    if (auto ok = check_output("--out", file, inputs); !ok) return ok;
  train.mask = static_cast<train::Mask>(mask_);
  train.targets = static_cast<train::Targets>(targets_);
  train.products = static_cast<train::Products>(products_);
  train.steps = steps_;
  train.evaluate_every = every_;
  train.evaluation_tokens = evaluation_tokens_;
  train.warmup = warmup_;
  train.rate = static_cast<float>(rate_);
  train.optimiser.average = static_cast<float>(average_);
  train.optimiser.decay = static_cast<float>(decay_);
  train.optimiser.clip = static_cast<float>(clip_);
  data.prompt_rows = !skips_prompts;
  return {};
}

}  // namespace paceline::apps
