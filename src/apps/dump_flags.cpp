#include "apps/dump_flags.h"

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
          .width = engine.model().info().dim};
}

DumpHeader DumpFlags::header(const Engine& engine, uint64_t seed, const Json& settings,
                             const std::string& prompts_sha256) const {
  constexpr const char* kWeights[] = {"native", "bf16", "f32"};
  constexpr const char* kCaches[] = {"f16", "bf16", "f32"};
  const ModelInfo& info = engine.model().info();
  return {.hidden_width = info.dim,
          .type = static_cast<TapType>(type),
          .tap = static_cast<Tap>(tap),
          .family = info.family,
          .vocab_size = info.vocab_size,
          .model_sha256 = engine.model_sha256(),
          .numerics = info.numerics,
          .weights = kWeights[static_cast<int>(engine.weights())],
          .cache = kCaches[static_cast<int>(engine.cache_type())],
          .seed = seed,
          .settings = json_text(settings, -1),
          .prompts_sha256 = prompts_sha256};
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
