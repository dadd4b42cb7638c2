#include "engine/gate.h"

#include <fmt/format.h>

#include <chrono>

#include "io/user_cache.h"

namespace paceline {
namespace {

constexpr const char* kKind = "gate";
// A change of what the probe does makes older verdicts void.
constexpr int kProbeVersion = 1;
constexpr int kPositions = 96;  // of the walk: across a border of spans

std::string cache_key(const std::string& key) {
  return key.empty() ? key : fmt::format("probe {} {}", kProbeVersion, key);
}

// "exact", or "inexact: REASON".
std::optional<GateVerdict> recalled(const std::string& key) {
  if (key.empty()) return std::nullopt;
  const auto line = recall(kKind, key);
  if (!line) return std::nullopt;
  if (*line == "exact") return GateVerdict{Verdict::Exact, "", true, 0};
  constexpr std::string_view kInexact = "inexact: ";
  if (!line->starts_with(kInexact)) return std::nullopt;
  return GateVerdict{Verdict::Inexact, line->substr(kInexact.size()), true, 0};
}

}  // namespace

void Gate::remember(const std::string& key, Verdict verdict, const std::string& reason) {
  if (key.empty() || verdict == Verdict::NotRun) return;  // tried again the next time
  paceline::remember(kKind, cache_key(key),
                     verdict == Verdict::Exact ? "exact" : "inexact: " + reason);
}

GateVerdict Gate::decide(const Model& model, std::span<const TokenId> text, int context,
                         CacheType cache, const std::string& key) {
  if (auto known = recalled(cache_key(key))) return *known;
  const auto start = std::chrono::steady_clock::now();
  const auto result = probe(model, text, context, cache, {.positions = kPositions});
  GateVerdict verdict;
  if (result) {
    verdict.verdict = result->verdict;
    verdict.reason = result->reason;
    remember(key, verdict.verdict, verdict.reason);
  } else {
    verdict.reason = "the probe could not run: " + result.error().message;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  verdict.seconds = seconds.count();
  return verdict;
}

const DraftPermit* Gate::permit(const GateVerdict& verdict, bool allow_inexact) {
  static const DraftPermit granted;
  return verdict.verdict == Verdict::Exact || allow_inexact ? &granted : nullptr;
}

}  // namespace paceline
