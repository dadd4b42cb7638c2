// A dump's stream as replay walks it: in the command and in training's evaluation alike.
#pragma once

#include <optional>

#include "io/dump.h"
#include "spec/replay.h"

namespace paceline {

// Up to where a short cycle begins, or with `cycles` to its end. Nothing where it ends before its
// first token of output. The dump must outlive it.
std::optional<RecordedText> recorded_text(const DumpStream& stream, bool cycles = false);

}  // namespace paceline
