#include "train/run_settings.h"

#include <algorithm>

#include "base/sha256.h"
#include "fmt/format.h"
#include "spec/dump_text.h"
#include "train/choose.h"
#include "train/run_state.h"
#include "train/trunk_side.h"

namespace paceline::train {
namespace {

std::string digest_of(const HeadTensors& head) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(head.config.draft_vocabulary)));
  for (const auto& [name, tensor] : head.tensors) {
    digest.update(std::as_bytes(std::span(name)));
    digest.update(std::as_bytes(std::span(tensor.values)));
  }
  return digest.finish();
}

Result<void> check_together(const TrainInputs& inputs) {
  const Model& model = *inputs.model;
  const DumpHeader& dump = inputs.data->dump().header();
  const HeadConfig& head = inputs.start.config;
  const auto refuse = [](const std::string& what) -> Result<void> {
    return Error{ErrorCode::BadUsage,
                 what + "; collect a dump for this head, or train another one"};
  };
  const bool says_nothing = dump.family.empty();  // a file of records
  const int words = model.info().vocab_size;
  if (dump.hidden_width != model.info().dim ||
      (says_nothing ? dump.vocab_size > words : dump.vocab_size != words))
    return refuse(fmt::format("the dump has hiddens of {} values and {} words, the trunk {} and {}",
                              dump.hidden_width, dump.vocab_size, model.info().dim,
                              model.info().vocab_size));
  if (auto ok = check_tap(dump, head); !ok) return ok;
  if (!dump.model_sha256.empty() && !head.trunk_sha256.empty() &&
      dump.model_sha256 != head.trunk_sha256)
    return refuse(
        fmt::format("the dump was made by a trunk of SHA-256 {}..., the head is for {}...",
                    dump.model_sha256.substr(0, 12), head.trunk_sha256.substr(0, 12)));
  return {};
}

}  // namespace

std::vector<std::string> settings_of(const TrainInputs& inputs, const TrainOptions& o,
                                     const TrainTable& table) {
  constexpr const char* kTargets[] = {"soft", "hard", "mixed"};
  constexpr const char* kCaches[] = {"f16", "bf16", "f32"};
  const HeadConfig& head = inputs.start.config;
  const DataOptions& data = inputs.data->options();
  std::vector<std::string> lines = {
      fmt::format("tap {}", to_string(head.tap)),
      fmt::format("tap type {}", to_string(head.tap_type)),
      fmt::format("modules {}", head.modules),
      fmt::format("shortlist of {} words", head.draft_vocabulary.size()),
      fmt::format("trunk {}", head.trunk_sha256),
      fmt::format("data {}", head.data_sha256),
      fmt::format("depths {}", o.depths),
      fmt::format("beta {}", o.beta),
      fmt::format("dpace {}", o.dpace),
      fmt::format("mask {}", o.mask == Mask::Served ? "served" : "recipe"),
      fmt::format("targets {}", kTargets[static_cast<int>(o.targets)]),
      fmt::format("first depth's share {}", o.first_depth_share),
      fmt::format("learning rate {}", o.rate),
      fmt::format("weight decay {}", o.optimiser.decay),
      fmt::format("clipping {}", o.optimiser.clip),
      fmt::format("average {}", o.optimiser.average),
      fmt::format("warm-up {}", o.warmup),
      fmt::format("batch {}", o.batch),
      fmt::format("seed {}", o.seed),
      fmt::format("steps {}", o.steps),
      fmt::format("minutes {}", o.minutes),
      fmt::format("pieces of {} rows", data.max_rows),
      fmt::format("prompt rows {}", data.prompt_rows ? "taken" : "left out"),
      fmt::format("evaluations over {} tokens", o.evaluation_tokens),
      fmt::format("cache {}", kCaches[static_cast<int>(o.cache)]),
      fmt::format("products in {}", table.name),
      inputs.in_place ? "a start from the head in its own place"
                      : fmt::format("a start from a head of SHA-256 {}", digest_of(inputs.start))};
  std::string frozen = "frozen";
  for (const Part part : {Part::Merge, Part::Norms, Part::Layer})
    if (std::ranges::count(o.freeze, part) > 0)
      frozen += fmt::format(" {}", static_cast<int>(part));
  lines.push_back(frozen);
  return lines;
}

std::filesystem::path state_file_of(const TrainInputs& inputs) {
  return inputs.out.string() + ".run";
}

Result<void> check_inputs(const TrainInputs& inputs, const TrainOptions& options) {
  auto trunk = TrunkSide::of(*inputs.model);
  if (!trunk) return trunk.error();
  const HeadConfig& head = inputs.start.config;
  auto together = check_together(inputs);
  if (!together) return together;
  auto fits = check_head(inputs.start, inputs.model->head_shapes(head.modules),
                         inputs.model->info().vocab_size);
  if (!fits) return fits;
  if (options.depths < head.modules)
    return Error{ErrorCode::BadUsage,
                 fmt::format("--depths {} leaves modules of the head without use, which has {}",
                             options.depths, head.modules)};
  const auto table = choose_train_table(*trunk->kernels().table, options.products);
  if (!table) return table.error();
  if (!inputs.resume) return {};
  std::filesystem::path used;
  const auto state = read_run_state(state_file_of(inputs), &used);
  if (!state) return state.error();
  const std::string differs = setting_that_differs(*state, settings_of(inputs, options, **table));
  if (!differs.empty()) return Error{ErrorCode::BadUsage, "--resume: " + differs};
  return {};
}

}  // namespace paceline::train
