// paceline export: a model as a Hugging Face folder in bfloat16.
#include "engine/export.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/say.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "base/threads.h"
#include "base/version.h"

namespace paceline::apps {
namespace {

// "5GB", "200MB", "20KB" (powers of 1000, as the hub counts) or bytes.
Result<int64_t> parse_size(std::string_view text) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(read.ptr, static_cast<size_t>(text.data() + text.size() - read.ptr));
  const int64_t factor = unit.empty()   ? 1
                         : unit == "KB" ? 1'000
                         : unit == "MB" ? 1'000'000
                         : unit == "GB" ? 1'000'000'000
                                        : 0;
  if (read.ec != std::errc() || factor == 0 || number < 1 ||
      number > std::numeric_limits<int64_t>::max() / factor)
    return wants("a size such as 5GB, 200MB or 4096", text);
  return number * factor;
}

}  // namespace

int run_export(Args args) {
  std::string model;
  std::optional<std::string> out;
  int threads = 0;
  ExportOptions options;
  JsonFile json;
  Flags flags("export",
              "Write a GGUF or quantised model as a folder in bfloat16 that transformers and "
              "paceline load: config, tokenizer, chat template, safetensors.",
              "paceline export model.gguf --out model-bf16");
  flags.positional("MODEL", model, "a .gguf file, or a folder with config.json and safetensors");
  flags.text("--out", "FOLDER", out, "folder to make; it must be new or empty");
  flags.value(
      "--shard-size", "SIZE",
      [&](std::string_view text) -> Result<void> {
        const auto size = parse_size(text);
        if (!size) return size.error();
        options.shard_bytes = *size;
        return {};
      },
      "a weight file holds this much at most (default: 5GB)");
  flags.integer("--threads", threads, 1, 256, "threads (default: the CPUs there are)");
  flags.group("Output");
  json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("export", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (!out) return fail("export", {ErrorCode::BadUsage, "give --out"});
  if (auto ok = json.check(model); !ok) return fail("export", ok.error());

  catch_interrupts();
  ProgressLine progress;
  options.out = *out;
  options.threads = threads > 0 ? threads : available_cpus();
  options.progress = [&](double share) { progress.show("writing", share); };
  options.stop = interrupted;
  const auto summary = export_model(model, options);
  progress.clear();
  if (!summary) return fail("export", summary.error());

  for (const std::string& name : summary->left_out)
    warn(name + " is left out: no part of the model reads it");
  if (!json.is_stdout())
    for (const std::string& file : summary->files) say("{}\n", file);
  const Json report{{"command", "export"},
                    {"version", version()},
                    {"commit", commit()},
                    {"model", model},
                    {"model_sha256", summary->model_sha256},
                    {"family", summary->family},
                    {"threads", options.threads},
                    {"parameters", summary->parameters},
                    {"files", summary->files},
                    {"left_out", summary->left_out}};
  if (auto written = json.write(report); !written) return fail("export", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
