#include "apps/dump_flags.h"

#include <fmt/core.h>

#include "apps/values.h"

namespace paceline::apps {

void DumpFlags::add(Flags& flags, const std::string& folder_flag, const std::string& help) {
  flags.text(folder_flag, "DUMP", folder, help);
  flags.choice("--dump-type", {"bf16", "f32"}, type, "type of the hiddens in it (default: bf16)");
  flags.choice("--tap", {"after", "before"}, tap,
               "hiddens after the trunk's final norm (default), or before it");
}

Result<void> DumpFlags::check(const std::string& folder_flag) const {
  if (folder && folder->empty()) {
    return Error{ErrorCode::BadUsage, folder_flag + " wants a folder, not ''"};
  }
  if (!folder && (type != 0 || tap != 0)) {
    return Error{ErrorCode::BadUsage, "--dump-type and --tap go with " + folder_flag};
  }
  return {};
}

RowKind DumpFlags::rows(const Engine& engine) const {
  return {.tap = static_cast<Tap>(tap),
          .type = static_cast<TapType>(type),
          .width = engine.model().info().dim,
          .head_sha256 = engine.head() != nullptr ? engine.head()->sha256 : ""};
}

namespace {

// What a dump has of the engine that made it.
DumpHeader header_of(const Engine& engine) {
  constexpr const char* kWeights[] = {"native", "bf16", "f32"};
  constexpr const char* kCaches[] = {"f16", "bf16", "f32"};
  const ModelInfo& info = engine.model().info();
  DumpHeader header;
  header.hidden_width = info.dim;
  header.family = info.family;
  header.vocab_size = info.vocab_size;
  header.model_sha256 = engine.model_sha256();
  header.numerics = info.numerics;
  header.weights = kWeights[static_cast<int>(engine.weights())];
  header.cache = kCaches[static_cast<int>(engine.cache_type())];
  return header;
}

}  // namespace

DumpHeader DumpFlags::header(const Engine& engine, uint64_t seed, const Json& settings,
                             const std::string& prompts_sha256) const {
  DumpHeader header = header_of(engine);
  header.type = static_cast<TapType>(type);
  header.tap = static_cast<Tap>(tap);
  header.seed = seed;
  header.settings = json_text(settings, -1);
  header.prompts_sha256 = prompts_sha256;
  return header;
}

Result<void> check_dump_is_of(const Engine& engine, const DumpHeader& dump,
                              const std::string& name) {
  const DumpHeader here = header_of(engine);
  const auto refused = [&](const char* what, const auto& there, const auto& wanted) {
    return Error{
        ErrorCode::BadUsage,
        fmt::format("{}: it was made with {} {}, and this run has {}; collect anew, or run "
                    "as it was made",
                    name, what, there, wanted)};
  };
  if (dump.model_sha256 != here.model_sha256)
    return refused("a model of SHA-256", dump.model_sha256, here.model_sha256);
  if (dump.vocab_size != here.vocab_size)
    return refused("a vocabulary of", dump.vocab_size, here.vocab_size);
  if (dump.hidden_width != here.hidden_width)
    return refused("hiddens of width", dump.hidden_width, here.hidden_width);
  if (dump.numerics != here.numerics) return refused("--numerics", dump.numerics, here.numerics);
  if (dump.weights != here.weights) return refused("--weights", dump.weights, here.weights);
  if (dump.cache != here.cache) return refused("--cache", dump.cache, here.cache);
  return {};
}

void warn_of_dropped_bytes(const Dump& dump, const std::string& name) {
  if (dump.dropped_bytes() > 0)
    warn(fmt::format("{}: {} bytes are damaged or no whole stream and are left out", name,
                     dump.dropped_bytes()));
}

Json answer_settings(const std::string& kind, const DecodeFlags& decode, const ModelFlags& model,
                     const Engine& engine) {
  return Json{{"kind", kind},
              {"max_tokens", decode.max_tokens},
              {"context", engine.context()},
              {"stop", decode.stop},
              {"ignore_eos", decode.ignore_eos},
              {"kernels", model.kernels == 0 ? "exact" : "wide"},
              {"sampling", sampling_json(decode.sampling)}};
}

}  // namespace paceline::apps
