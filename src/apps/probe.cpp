// paceline probe: does a block give what a chain gives, on this machine, for this trunk?
#include <fmt/core.h>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/say.h"
#include "apps/terminal.h"
#include "apps/values.h"

namespace paceline::apps {
namespace {

Json difference_json(const ProbeResult& result) {
  if (!result.first_difference) return nullptr;
  const Difference& d = *result.first_difference;
  return Json{{"reader", d.reader},
              {"walk", d.walk},
              {"position", d.position},
              {"width", d.width},
              {"tensor", d.tensor},
              {"index", d.index},
              {"wanted", fmt::format("{:08x}", d.wanted)},
              {"found", fmt::format("{:08x}", d.found)}};
}

void print_result(const ProbeResult& result) {
  for (const std::string& reader : result.readers) say("  {}\n", reader);
  say("{} positions, {} trees of {} rows, {:.1f} MB compared in {:.1f} s\n", result.positions,
      result.trees, result.tree_rows, static_cast<double>(result.bytes) / 1e6, result.seconds);
  if (!result.reason.empty() && !interrupted()) say("{}\n", result.reason);
  say("verdict: {}\n", to_string(result.verdict));
}

}  // namespace

int probe(Args args) {
  ModelFlags model;
  JsonFile json;
  bool longer = false;
  Flags flags("probe",
              "Read a text token by token and in blocks, with wrong drafts rolled back, in other "
              "chunks, on other threads, beside other sequences, as paths of trees: are logits, "
              "hiddens and cache the "
              "same, byte for byte? The verdict decides whether this model may speculate here.",
              "paceline probe model.gguf --long --json probe.json");
  model.add(flags);
  flags.group("Probing");
  flags.flag("--long", longer, "every width from 1 to 16, three walks of up to 2,048 positions");
  flags.group("Output");
  json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("probe", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (auto ok = json.check(model.model); !ok) return fail("probe", ok.error());

  catch_interrupts();
  const auto engine = model.open();
  if (!engine) return fail("probe", engine.error());
  print_warnings(*engine);
  Json report = report_header("probe", model, *engine, "none");
  ProgressLine progress;
  ProbeOptions options = longer ? long_probe() : ProbeOptions{};
  options.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  options.stop = interrupted;
  const auto result = engine->probe(options);
  progress.clear();
  if (!result) return fail("probe", result.error());
  if (interrupted()) say(stderr, "interrupted\n");
  report["verdict"] = to_string(result->verdict);
  report["reason"] = result->reason;
  report["positions"] = result->positions;
  report["widths"] = options.widths;
  report["readers"] = result->readers;
  report["trees"] = result->trees;
  report["tree_rows"] = result->tree_rows;
  report["bytes"] = result->bytes;
  report["seconds"] = result->seconds;
  report["first_difference"] = difference_json(*result);
  report["interrupted"] = interrupted();
  if (!json.is_stdout()) print_result(*result);
  if (auto written = json.write(report); !written) return fail("probe", written.error());
  if (interrupted()) return kExitInterrupted;
  return result->verdict == Verdict::Exact ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
