// The gate: speculation runs only behind a probe that found this trunk exact on this machine.
#pragma once

#include <string>

#include "engine/probe.h"

namespace paceline {

// What the gate knows of an engine's trunk.
struct GateVerdict {
  Verdict verdict = Verdict::NotRun;
  std::string reason;   // "" when exact; else why speculation is off
  bool cached = false;  // decided by an earlier run
  double seconds = 0;   // that the probe took, when it ran now
};

// Leave to draft. Only the gate makes one, and whoever makes a drafter that drafts asks for it, so
// that no path to speculation leads round the gate.
class DraftPermit {
 private:
  friend class Gate;
  DraftPermit() = default;
};

class Gate {
 public:
  // key: everything that a verdict depends on, as text, for the cache of verdicts; "": not cached.
  // text: what to walk over; context: positions that the trunk was made for. stop: looked at
  // between passes.
  static GateVerdict decide(const Model& model, std::span<const TokenId> text, int context,
                            CacheType cache, const std::string& key,
                            const std::function<bool()>& stop = {});
  // Verdicts of `paceline probe` are remembered too; no `exact` takes the place of an `inexact`.
  static void remember(const std::string& key, Verdict verdict, const std::string& reason);

  // None where the verdict is not `exact`.
  static const DraftPermit* permit(const GateVerdict& verdict);
  // Whatever the verdict: the user said so.
  static const DraftPermit* overruled();
  // For drafts over a text that is already written.
  static const DraftPermit* replaying();
};

}  // namespace paceline
