// paceline synth: a checkpoint with random weights and the shapes of a released model.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/synth_files.h"
#include "apps/synth_shapes.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "base/threads.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

struct SynthFlags {
  std::optional<std::string> family;
  std::optional<std::string> size;
  std::optional<std::string> out;
  int type = -1;
  int threads = 0;
  int seed = 1;
  JsonFile json;
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  names.reserve(synth_shapes().size());
  for (const SynthShape& shape : synth_shapes()) {
    if (!contains(names, shape.family)) names.emplace_back(shape.family);
  }
  return names;
}

Result<SynthJob> check_flags(const SynthFlags& given) {
  for (const auto& [value, name] :
       {std::pair(&given.family, "--family"), std::pair(&given.size, "--size"),
        std::pair(&given.out, "--out")}) {
    if (!*value || (*value)->empty())
      return Error{ErrorCode::BadUsage, fmt::format("give {}", name)};
  }
  if (given.type < 0) return Error{ErrorCode::BadUsage, "give --type"};
  if (auto ok = given.json.check(); !ok) return ok.error();
  if (!contains(family_names(), *given.family)) {
    return Error{ErrorCode::BadUsage, fmt::format("--family wants one of {}, not {}",
                                                  listed(family_names(), family_names().size()),
                                                  quoted_name(*given.family))};
  }
  const auto shape = find_synth_shape(*given.family, *given.size);
  if (!shape) return shape.error();
  constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q4_1};
  SynthJob job;
  job.shape = *shape;
  job.type = kTypes[given.type];
  job.folder = *given.out;
  job.seed = static_cast<uint64_t>(given.seed);
  job.threads = given.threads > 0 ? given.threads : available_cpus();
  return job;
}

// "llama: tiny, 135m; qwen3: tiny"
std::string size_names() {
  std::string names;
  std::string_view family;
  for (const SynthShape& shape : synth_shapes()) {
    if (shape.family != family) {
      names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", shape.family, shape.size);
    } else {
      names += fmt::format(", {}", shape.size);
    }
    family = shape.family;
  }
  return names;
}

}  // namespace

int synth(Args args) {
  SynthFlags given;
  Flags flags("synth",
              "Write a checkpoint with random weights and the shapes of a released model: a folder "
              "with safetensors for f32 and bf16, a .gguf file in the folder for the others.",
              "paceline synth --family llama --size tiny --type bf16 --out /tmp/tiny");
  flags.group("Checkpoint");
  flags.text("--family", "NAME", given.family,
             "whose tensors: " + listed(family_names(), family_names().size()));
  flags.text("--size", "NAME", given.size, size_names());
  flags.choice("--type", {"f32", "bf16", "q8_0", "q4_0", "q4_1"}, given.type, "of the matrices");
  flags.text("--out", "DIR", given.out, "folder to make; it must be new or empty");
  flags.integer("--seed", given.seed, 0, 2147483647, "of the weights (default: 1)");
  flags.integer("--threads", given.threads, 1, 256, "threads (default: the CPUs there are)");
  flags.group("Output");
  given.json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("synth", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  auto job = check_flags(given);
  if (!job) return fail("synth", job.error());

  catch_interrupts();
  ProgressLine progress;
  job->progress = [&](double share) { progress.show("writing", share); };
  job->stop = interrupted;
  const auto files = write_synth(*job);
  progress.clear();
  if (!files) return fail("synth", files.error());

  int64_t parameters = 0;
  for (const SynthTensor& tensor : synth_tensors(job->shape)) parameters += tensor.elements();
  if (!given.json.is_stdout()) {
    for (const std::string& file : *files) say("{}\n", file);
  }
  Json report = report_head("synth");
  report["family"] = job->shape.family;
  report["size"] = job->shape.size;
  report["type"] = to_string(job->type);
  report["seed"] = job->seed;
  report["threads"] = job->threads;
  report["parameters"] = parameters;
  report["files"] = *files;
  if (auto written = given.json.write(report); !written) return fail("synth", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
