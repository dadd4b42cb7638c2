// What the gate says before a run that wants to draft.
#pragma once

#include "apps/json_file.h"
#include "apps/spec_flags.h"
#include "engine/engine.h"

namespace paceline::apps {

// If some arm drafts: names the draft head, if it is one, asks the gate, and says once, on standard
// error, when it declines or is overruled. Adds `gate` and `allow_inexact` to the report (null
// where nothing drafts).
void settle_gate(const Engine& engine, const SpecFlags& spec, Json& report);

}  // namespace paceline::apps
