#include "apps/gate_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "apps/interrupt.h"
#include "apps/say.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

bool uses_store(DrafterKind kind) {
  return kind == DrafterKind::Auto || kind == DrafterKind::Union;
}
bool uses_head(DrafterKind kind) { return uses_store(kind) || kind == DrafterKind::Mtp; }

// What several modules do at depths beyond their number.
std::string about_modules(const HeadInUse& head, const std::vector<DraftShape>& arms) {
  const int modules = head.info.config.modules;
  if (modules == 1) return "";
  const bool beyond = std::any_of(arms.begin(), arms.end(), [&](const DraftShape& arm) {
    return arm.depth == kAutoDepth || arm.depth > modules;
  });
  return fmt::format(", {} modules{}", modules,
                     beyond ? ", the last of which drafts all deeper ones" : "");
}

}  // namespace

void settle_gate(const Engine& engine, const SpecFlags& spec, Json& report) {
  report["allow_inexact"] = spec.allow_inexact;
  report["gate"] = nullptr;
  if (!spec.drafts_at_all()) return;
  if (const HeadInUse* head = engine.head(); head != nullptr && uses_head(spec.kind()))
    say(stderr, "draft head: {}{}\n", shown_path(head->file), about_modules(*head, spec.arms));
  if (const StoreInUse* store = engine.store(); store != nullptr && uses_store(spec.kind()))
    say(stderr, "store of n-grams: {}\n", shown_path(store->file));
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

Result<void> keep_learnt(const Engine& engine) {
  const auto learnt = engine.save_learnt();
  if (!learnt) return learnt.error();
  if (learnt->tokens > 0) {
    say(stderr, "learnt {} tokens; to forget all that was learnt, remove {}\n", learnt->tokens,
        shown_path(learnt->file));
  }
  return {};
}

}  // namespace paceline::apps
