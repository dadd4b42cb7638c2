#include "apps/model_flags.h"

#include <limits>

#include "apps/report_head.h"
#include "apps/terminal.h"
#include "apps/values.h"

namespace paceline::apps {

void ModelFlags::add(Flags& flags) {
  flags.positional("MODEL", model, "folder with config.json and safetensors, or a .gguf file");
  flags.group("Model");
  flags.integer("--threads", threads, 1, 256, "threads (default: the CPUs this process may use)");
  flags.choice("--weights", {"native", "bf16", "f32"}, weights,
               "weights as the file has them (default), or dequantised at load");
  flags.choice("--cache", {"f16", "bf16", "f32"}, cache,
               "type of the attention cache (default: f16; f32 with --weights f32)");
  flags.integer("--context", context, 2, std::numeric_limits<int>::max(),
                "positions a sequence may hold (default: what the model was made for)");
  flags.choice("--numerics", {"portable", "amx"}, numerics,
               "order of operations: portable, the same bits everywhere, or amx, bf16 weights "
               "through AMX tiles (default: amx where the machine has it)");
  flags.choice("--kernels", {"exact", "wide"}, kernels,
               "exact (default), or wide: a control that breaks the row rule on purpose");
  flags.value(
      "--seed", "N",
      [this](std::string_view given) -> Result<void> {
        const auto number = parse_integer(given, 0, std::numeric_limits<int64_t>::max());
        if (!number) return number.error();
        seed = static_cast<uint64_t>(*number);
        return {};
      },
      "of the noise that tokens are drawn with; recorded in reports (default: 1)");
}

Result<Engine> ModelFlags::open(const HeadChoice& head, const StoreChoice& store) const {
  ProgressLine progress;
  EngineOptions options;
  options.threads = threads;
  options.weights = static_cast<WeightsType>(weights);
  if (cache >= 0) options.cache = static_cast<CacheType>(cache);
  options.context = context;
  options.wide_kernels = kernels == 1;
  options.use_head = head.load;
  options.head = head.file;
  options.use_store = store.load;
  options.store = store.file;
  options.learn = store.learn;
  if (numerics >= 0) options.numerics = static_cast<Numerics>(numerics);
  options.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  return Engine::open(model, options);
}

void print_warnings(const Engine& engine) {
  for (const std::string& warning : engine.warnings()) warn(warning);
}

Json report_header(const std::string& command, const ModelFlags& flags, const Engine& engine,
                   const std::string& drafter) {
  const ModelInfo& info = engine.model().info();
  const NgramStore* store = engine.store() == nullptr ? nullptr : engine.store()->store.get();
  const bool huge = info.huge_bytes * 2 >= info.weight_bytes;
  constexpr const char* kWeights[] = {"native", "bf16", "f32"};
  constexpr const char* kCaches[] = {"f16", "bf16", "f32"};
  Json report = report_head(command);
  report["model"] = flags.model;
  report["model_sha256"] = engine.model_sha256();
  report["head_sha256"] = engine.head() == nullptr ? Json() : Json(engine.head()->sha256);
  report["store_sha256"] = store == nullptr ? Json() : Json(store->sha256());
  report["store_bytes"] = store == nullptr ? Json() : Json(store->bytes());
  report["family"] = info.family;
  report["numerics"] = info.numerics;
  report["kernels"] = flags.kernels == 0 ? "exact" : "wide";
  report["instruction_set"] = info.isa;
  report["threads"] = engine.threads();
  report["weights"] = kWeights[static_cast<int>(engine.weights())];
  report["cache"] = kCaches[static_cast<int>(engine.cache_type())];
  report["context"] = engine.context();
  report["page_size"] = huge ? "2 MiB" : "4 KiB";
  report["huge_page_bytes"] = info.huge_bytes;
  report["warnings"] = std::vector<std::string>(engine.warnings().begin(), engine.warnings().end());
  report["seed"] = flags.seed;
  report["drafter"] = drafter;
  return report;
}

}  // namespace paceline::apps
