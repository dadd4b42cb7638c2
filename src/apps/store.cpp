// paceline store: makes a store of n-grams of a dump's answers.
#include <fmt/core.h>

#include "apps/commands.h"
#include "apps/dump_flags.h"
#include "apps/json_file.h"
#include "apps/output_path.h"
#include "apps/say.h"
#include "apps/values.h"
#include "base/version.h"
#include "io/dump.h"
#include "io/shown.h"
#include "spec/dump_text.h"
#include "spec/store_builder.h"

namespace paceline::apps {
namespace {

struct StoreFlags {
  std::string dump;
  std::optional<std::string> out;
  int max_bytes = static_cast<int>(StoreLimits{}.max_bytes);
  JsonFile json;
};

}  // namespace

int store(Args args) {
  StoreFlags given;
  Flags flags("store", "Make a store of n-grams of the answers in a dump.",
              "paceline store dump --out heads/model.plstore");
  flags.positional("DUMP", given.dump, "what collect wrote");
  flags.text("--out", "FILE", given.out, "the store; what stands there is replaced");
  flags.integer("--max-bytes", given.max_bytes, 1'000'000, 1 << 30,
                "what is rarest and oldest is left out of a larger one (default: 4000000)");
  flags.group("Output");
  given.json.add_flag(flags);

  const auto outcome = flags.parse(args);
  if (!outcome) return fail("store", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  if (!given.out || given.out->empty())
    return fail("store", {ErrorCode::BadUsage, "--out is missing: the file of the store"});
  if (auto ok = check_output("--out", *given.out, std::span(&given.dump, 1)); !ok)
    return fail("store", ok.error());
  for (const std::string& file : {given.dump, *given.out})
    if (auto ok = given.json.check(file); !ok) return fail("store", ok.error());
  const auto dump = Dump::open(given.dump);
  if (!dump) return fail("store", dump.error());

  const DumpHeader& header = dump->header();
  StoreBuilder builder(header.model_sha256, header.vocab_size, {.max_bytes = given.max_bytes});
  int answers = 0;
  for (int i = 0; i < dump->size(); ++i) {
    const DumpStream stream = dump->stream(i);
    if (stream.given_text) continue;
    ++answers;
    if (const auto text = recorded_text(stream))
      builder.add(text->tokens.subspan(static_cast<size_t>(text->n_prompt)));
  }
  if (answers == 0) {
    return fail("store", {ErrorCode::BadUsage, fmt::format("{}: it has given texts alone, and no "
                                                           "answers of the model",
                                                           shown_path(given.dump))});
  }
  warn_of_dropped_bytes(*dump, shown_path(given.dump));
  if (auto saved = builder.save(*given.out); !saved) return fail("store", saved.error());
  const auto made = NgramStore::open(*given.out);
  if (!made) return fail("store", made.error());
  const NgramStore& result = **made;
  say(stderr, "{} tokens of {} answers, {} entries, {} bytes\n", result.n_tokens(), answers,
      result.n_entries(), result.bytes());
  const Json report = {{"command", "store"},
                       {"version", version()},
                       {"commit", commit()},
                       {"model_sha256", result.trunk_sha256()},
                       {"answers", answers},
                       {"tokens", result.n_tokens()},
                       {"entries", result.n_entries()},
                       {"store_bytes", result.bytes()},
                       {"store_sha256", result.sha256()}};
  if (auto written = given.json.write(report); !written) return fail("store", written.error());
  return kExitSuccess;
}

}  // namespace paceline::apps
