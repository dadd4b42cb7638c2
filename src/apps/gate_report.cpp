#include "apps/gate_report.h"

#include <algorithm>
#include <cstdio>

#include "apps/interrupt.h"
#include "apps/say.h"

namespace paceline::apps {

void settle_gate(const Engine& engine, const SpecFlags& spec, Json& report) {
  report["allow_inexact"] = spec.allow_inexact;
  report["gate"] = nullptr;
  const bool drafts =
      spec.kind() != DrafterKind::None &&
      std::any_of(spec.depths.begin(), spec.depths.end(), [](int depth) { return depth != 0; });
  if (!drafts) return;
  const GateVerdict& gate = engine.gate(interrupted);
  report["gate"] = Json{{"verdict", to_string(gate.verdict)},
                        {"reason", gate.reason},
                        {"cached", gate.cached},
                        {"seconds", gate.seconds}};
  if (gate.verdict == Verdict::Exact || interrupted()) return;
  if (spec.allow_inexact) {
    say(stderr, "warning: the text may differ from plain text: {}\n", gate.reason);
  } else {
    say(stderr, "speculation is off, since its text could differ from plain text: {}\n",
        gate.reason);
  }
}

}  // namespace paceline::apps
