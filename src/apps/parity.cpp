// paceline parity: every kernel held against itself, by bytes.
#include "measure/parity.h"

#include <fmt/ranges.h>

#include <cstdlib>

#include "apps/commands.h"
#include "apps/html_file.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/parity_report.h"
#include "apps/report_head.h"
#include "apps/say.h"
#include "apps/terminal.h"
#include "apps/values.h"
#include "base/threads.h"
#include "kernels/choose.h"

namespace paceline::apps {
namespace {

struct ParityFlags {
  bool quick = false;
  bool full = false;
  int threads = 0;
  int kernels = 0;  // index into exact, wide
  std::optional<std::string> only;
  JsonFile json;
  HtmlFile html;
};

// The tables to compare: all that this machine runs, or the one that PACELINE_ISA asks for.
Result<std::vector<const KernelTable*>> tables_to_compare(std::vector<std::string>& not_run) {
  const char* forced = std::getenv("PACELINE_ISA");
  if (forced == nullptr || *forced == '\0') {
    not_run = missing_kernel_tables();
    const auto all = kernel_tables();
    return std::vector<const KernelTable*>(all.begin(), all.end());
  }
  const auto table = choose_kernel_table(forced);
  if (!table) return table.error();
  not_run.push_back(fmt::format("all but {}: PACELINE_ISA asks for it alone", (*table)->variant));
  return std::vector{*table};
}

// The amx numerics differ in products with bf16 weights alone.
void add_amx(measure::ParityOptions options, measure::ParityResult& result) {
  const auto tables = kernel_tables(Numerics::Amx);
  options.tables.assign(tables.begin(), tables.end());
  options.only = "bf16";
  auto amx = measure::run_parity(options);
  result.complete = result.complete && amx.complete;
  for (measure::ParityRow& row : amx.rows) {
    if (!row.op.starts_with("product")) continue;
    result.bytes += row.bytes;
    result.bytes_different += row.bytes_different;
    result.rows.push_back(std::move(row));
  }
}

}  // namespace

int parity(Args args) {
  ParityFlags given;
  Flags flags("parity",
              "Hold every kernel's rows in blocks of 1 to 32 against the same rows alone, against "
              "other instruction sets and against the definition in plain loops, on shapes of "
              "real models. Needs no model. Exit status 1 when a byte differs.",
              "paceline parity --quick --json parity.json");
  flags.group("How much");
  flags.flag("--quick", given.quick, "about a hundred outputs of large matrices; up to a minute");
  flags.flag("--full", given.full, "whole matrices, every number of threads at every width");
  flags.text("--only", "TEXT", given.only,
             "those parts whose name holds this: \"product 576 -> 192 q4_1\"");
  flags.integer("--threads", given.threads, 1, 256,
                "threads at most; one and three are compared too (default: the CPUs there are)");
  flags.choice("--kernels", {"exact", "wide"}, given.kernels,
               "exact (default), or wide: a control that breaks the row rule and must be caught");
  flags.group("Output");
  given.json.add_flag(flags);
  given.html.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("parity", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (given.quick && given.full)
    return fail("parity", Error{ErrorCode::BadUsage, "give --quick or --full, not both"});
  if (auto ok = check_outputs({given.json.file(), given.html.file()}, {}); !ok)
    return fail("parity", ok.error());
  std::vector<std::string> not_run;
  const auto tables = tables_to_compare(not_run);
  if (!tables) return fail("parity", tables.error());

  Json report = report_head("parity");
  const int most = given.threads > 0 ? given.threads : available_cpus();
  measure::ParityOptions options;
  options.depth = given.quick  ? measure::ParityDepth::Quick
                  : given.full ? measure::ParityDepth::Full
                               : measure::ParityDepth::Usual;
  options.tables = *tables;
  options.threads = measure::parity_threads(most);
  options.wide = given.kernels == 1;
  options.only = given.only.value_or("");
  catch_interrupts();
  ProgressLine progress;
  options.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  options.stop = interrupted;
  auto result = measure::run_parity(options);
  const bool both = !given.only && std::getenv("PACELINE_ISA") == nullptr && result.complete;
  if (both) add_amx(options, result);
  progress.clear();
  if (result.rows.empty() && result.complete && result.not_run.empty())
    return fail("parity", Error{ErrorCode::BadUsage,
                                "--only wants a text that the name of a part holds, and none "
                                "holds \"" +
                                    options.only + "\""});
  result.not_run.insert(result.not_run.begin(), not_run.begin(), not_run.end());

  if (!given.json.is_stdout()) print_parity_table(result);
  report["numerics"] = both ? "both" : to_string(options.tables[0]->numerics);
  report["kernels"] = options.wide ? "wide" : "exact";
  std::vector<std::string> variants;
  for (const KernelTable* table : options.tables) variants.emplace_back(table->variant);
  report["instruction_set"] = fmt::format("{}", fmt::join(variants, ", "));
  report["instruction_sets"] = variants;
  report["threads"] = options.threads;
  report["interrupted"] = interrupted();
  add_parity_json(result, report);
  if (auto written = given.json.write(report); !written) return fail("parity", written.error());
  if (auto written = given.html.write(report); !written) return fail("parity", written.error());
  if (interrupted()) return kExitInterrupted;
  return result.bytes_different == 0 ? kExitSuccess : kExitCheckFailed;
}

}  // namespace paceline::apps
