// What the gate says before a run that wants to draft.
#pragma once

#include "apps/json_file.h"
#include "apps/spec_flags.h"
#include "engine/engine.h"

namespace paceline::apps {

// Asks the gate if some arm drafts: says so once, on standard error, when it declines or is
// overruled, and adds `gate` and `allow_inexact` to the report (null where nothing drafts).
void settle_gate(const Engine& engine, const SpecFlags& spec, Json& report);

}  // namespace paceline::apps
