#include "engine/gate.h"

#include <fmt/format.h>

#include <chrono>

#include "io/user_cache.h"

namespace paceline {
namespace {

constexpr const char* kKind = "gate";
// A change of what the probe does makes older verdicts void.
constexpr int kProbeVersion = 3;
// Of the walk: across a border of spans. Large trunks walk less far.
constexpr int kBeginning = 40;
constexpr int kPositions = 64;
constexpr double kSeconds = 2.0;

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
  // What one walk found wrong, another that found nothing does not put right.
  const auto known = recalled(cache_key(key));
  if (known && known->verdict == Verdict::Inexact && verdict == Verdict::Exact) return;
  paceline::remember(kKind, cache_key(key),
                     verdict == Verdict::Exact ? "exact" : "inexact: " + reason);
}

GateVerdict Gate::decide(const Model& model, std::span<const TokenId> text, int context,
                         CacheType cache, const std::string& key,
                         const std::function<bool()>& stop) {
  if (auto known = recalled(cache_key(key))) return *known;
  const auto start = std::chrono::steady_clock::now();
  ProbeOptions options;
  options.positions = kPositions;
  options.beginning = kBeginning;
  options.seconds = kSeconds;
  options.stop = stop;
  const auto result = probe(model, text, context, cache, options);
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

const DraftPermit* Gate::permit(const GateVerdict& verdict) {
  return verdict.verdict == Verdict::Exact ? overruled() : nullptr;
}

const DraftPermit* Gate::overruled() {
  static const DraftPermit granted;
  return &granted;
}

const DraftPermit* Gate::replaying() { return overruled(); }

}  // namespace paceline
