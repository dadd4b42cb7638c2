#include "measure/guard.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::measure {
namespace {

constexpr float kThresholds[] = {0.01f, 0.02f, 0.05f, 0.1f, 0.2f, 0.5f, 1, 2, 5, 10};

std::optional<float> logit_of(const TracePoint& point, TokenId id) {
  for (const auto& [token, logit] : point.top)
    if (token == id) return logit;
  return std::nullopt;
}

// How far the gap between the reference's two likeliest tokens moves, ascending.
std::vector<float> movements(const std::vector<TracePoint>& reference,
                             const std::vector<TracePoint>& candidate) {
  std::vector<float> moved;
  for (size_t i = 0; i < reference.size(); ++i) {
    const auto& top = reference[i].top;
    if (top.size() < 2) continue;
    const auto first = logit_of(candidate[i], top[0].first);
    const auto second = logit_of(candidate[i], top[1].first);
    if (first && second) moved.push_back(std::fabs((*first - *second) - reference[i].gap()));
  }
  std::sort(moved.begin(), moved.end());
  return moved;
}

// The smallest gap of each round, ascending.
std::vector<float> least_gaps(std::span<const RowGap> gaps) {
  std::vector<float> least;
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (i == 0 || gaps[i].round != gaps[i - 1].round)
      least.push_back(gaps[i].gap);
    else
      least.back() = std::min(least.back(), gaps[i].gap);
  }
  std::sort(least.begin(), least.end());
  return least;
}

double break_even(double ambiguous) {
  return ambiguous < 1 ? 1 / (1 - ambiguous) : std::numeric_limits<double>::infinity();
}

}  // namespace

Result<Guard> weigh_guard(std::span<const RowGap> gaps, const std::vector<TracePoint>& reference,
                          const std::vector<TracePoint>& candidate, const GuardOptions& options) {
  if (gaps.empty()) return Error{ErrorCode::BadUsage, "the gap log holds no row"};
  if (auto same = compare_traces(reference, candidate); !same) return same.error();
  const std::vector<float> moved = movements(reference, candidate);
  if (moved.empty())
    return Error{ErrorCode::BadUsage,
                 "no row of the candidate holds both of the reference's likeliest tokens; trace "
                 "with a larger --top"};
  const std::vector<float> least = least_gaps(gaps);

  Guard guard;
  guard.rounds = static_cast<int64_t>(least.size());
  guard.gaps = static_cast<int64_t>(gaps.size());
  guard.positions = static_cast<int64_t>(moved.size());
  guard.unknown = static_cast<int64_t>(reference.size() - moved.size());
  guard.largest = moved.back();
  const auto share_ambiguous = [&](float threshold) {
    const auto below = std::upper_bound(least.begin(), least.end(), threshold) - least.begin();
    return static_cast<double>(below) / static_cast<double>(least.size());
  };
  std::vector<float> thresholds = options.thresholds;
  if (thresholds.empty()) thresholds.assign(std::begin(kThresholds), std::end(kThresholds));
  std::sort(thresholds.begin(), thresholds.end());
  for (const float threshold : thresholds) {
    const auto within = std::upper_bound(moved.begin(), moved.end(), threshold) - moved.begin();
    const double ambiguous = share_ambiguous(threshold);
    guard.rows.push_back(
        {.threshold = threshold,
         .coverage = static_cast<double>(within) / static_cast<double>(moved.size()),
         .ambiguous = ambiguous,
         .cost = (1 + ambiguous * options.exact_cost) / options.exact_cost,
         .break_even = break_even(ambiguous)});
  }
  guard.break_even = break_even(share_ambiguous(guard.largest));
  guard.unseen_rate = 3 / static_cast<double>(moved.size());
  guard.unseen_rows = guard.unseen_rate * static_cast<double>(gaps.size());
  return guard;
}

}  // namespace paceline::measure
