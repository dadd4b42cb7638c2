// paceline patch and paceline unpatch: a draft head into a checkpoint, and out of it.
#include "engine/patch.h"

#include <cstdio>
#include <optional>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/say.h"
#include "apps/values.h"
#include "base/version.h"

namespace paceline::apps {
namespace {

constexpr const char* kModelHelp = "folder with config.json and safetensors, or a .gguf file";

Json digest_json(const std::string& digest) {
  return digest.empty() ? Json(nullptr) : Json(digest);
}

// Prints what was done, and writes the report.
int report(const char* command, const std::string& model, const PatchSummary& summary,
           const JsonFile& json) {
  for (const std::string& warning : summary.warnings) warn(warning);
  if (!json.is_stdout()) {
    for (const std::string& file : summary.files_written) say("wrote    {}\n", file);
    for (const std::string& file : summary.files_removed) say("removed  {}\n", file);
    say("trunk    {}\n", summary.sha256_after.empty() ? "none" : summary.sha256_after);
  }
  const Json written{{"command", command},
                     {"version", version()},
                     {"commit", commit()},
                     {"model", model},
                     {"files_written", summary.files_written},
                     {"files_removed", summary.files_removed},
                     {"sha256_before", digest_json(summary.sha256_before)},
                     {"sha256_after", digest_json(summary.sha256_after)},
                     {"head_sha256", digest_json(summary.head_sha256)},
                     {"warnings", summary.warnings}};
  if (auto done = json.write(written); !done) return fail(command, done.error());
  return kExitSuccess;
}

}  // namespace

int patch(Args args) {
  std::string model;
  std::optional<std::string> head, out;
  JsonFile json;
  Flags flags(
      "patch",
      "Put a draft head into a checkpoint: one more shard in a folder, a side file beside a "
      ".gguf file. unpatch takes it out again, to the byte.",
      "paceline patch model --head head.safetensors");
  flags.positional("MODEL", model, kModelHelp);
  flags.text("--head", "FILE", head, "the head, as train writes it");
  flags.text("--out", "FOLDER", out,
             "leave MODEL as it is and make this folder: all its files, patched; new or empty");
  flags.group("Output");
  json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("patch", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (!head || head->empty()) return fail("patch", {ErrorCode::BadUsage, "give --head"});
  if (out && out->empty())
    return fail("patch", {ErrorCode::BadUsage, "--out wants a folder, not ''"});
  for (const std::string& input : {model, *head})
    if (auto ok = json.check(input); !ok) return fail("patch", ok.error());

  catch_interrupts();
  const auto summary =
      patch_model({.model = model, .head = *head, .out = out.value_or(""), .stop = interrupted});
  if (!summary) return fail("patch", summary.error());
  return report("patch", model, *summary, json);
}

int unpatch(Args args) {
  std::string model;
  JsonFile json;
  Flags flags(
      "unpatch",
      "Take the draft head out of a checkpoint that was patched: every file is what it was, "
      "to the byte. An unfinished patch is taken back too.",
      "paceline unpatch model");
  flags.positional("MODEL", model, kModelHelp);
  flags.group("Output");
  json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("unpatch", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = json.check(model); !ok) return fail("unpatch", ok.error());

  const auto summary = unpatch_model(model);
  if (!summary) return fail("unpatch", summary.error());
  return report("unpatch", model, *summary, json);
}

}  // namespace paceline::apps
