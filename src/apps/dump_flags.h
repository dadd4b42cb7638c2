// The flags of recording: into which dump, at which tap, in which type.
#pragma once

#include <optional>
#include <string>

#include "apps/decode_flags.h"
#include "apps/flags.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/stream_recorder.h"
#include "engine/engine.h"
#include "io/dump.h"
#include "io/dump_writer.h"

namespace paceline::apps {

struct DumpFlags {
  std::optional<std::string> folder;
  int type = 0;  // index into bf16, f32
  int tap = 0;   // index into after, before

  // folder_flag: "--out"
  void add(Flags& flags, const std::string& folder_flag, const std::string& help);
  // Whether the rest goes with the folder.
  Result<void> check(const std::string& folder_flag) const;

  RowKind rows(const Engine& engine) const;
  // settings: what else decides which streams come of the same prompts.
  DumpHeader header(const Engine& engine, uint64_t seed, const Json& settings,
                    const std::string& prompts_sha256) const;
};

// Whether the dump's numbers are this engine's: of its model, numerics, weights and cache. BadUsage
// with what differs. name: of the dump, for the error.
Result<void> check_dump_is_of(const Engine& engine, const DumpHeader& dump,
                              const std::string& name);

// A warning on standard error where parts of a dump are left out, damaged or not whole.
void warn_of_dropped_bytes(const Dump& dump, const std::string& name);

// The settings of answers; kind: how they came about.
Json answer_settings(const std::string& kind, const DecodeFlags& decode, const ModelFlags& model,
                     const Engine& engine);

}  // namespace paceline::apps
