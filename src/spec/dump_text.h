// Dumps as replay and training read them: a stream as it is walked, and whether a head can walk it.
#pragma once

#include <optional>

#include "base/result.h"
#include "io/dump.h"
#include "models/head_file.h"
#include "spec/replay.h"

namespace paceline {

// Up to where a short cycle begins, or with `cycles` to its end. Nothing where it ends before its
// first token of output. The dump must outlive it.
std::optional<RecordedText> recorded_text(const DumpStream& stream, bool cycles = false);

// Whether the dump's hiddens are what the head reads: of its tap, and no more rounded than it reads
// them. BadUsage with what differs. A file of records does not say its tap.
Result<void> check_tap(const DumpHeader& dump, const HeadConfig& head);

}  // namespace paceline
