#include "spec/cost_tracker.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

constexpr double kKept = 0.99;  // of a pass's weight, by the next: a hundred passes count
constexpr double kRidge = 0.2;  // weight of the measured slope, as of passes with x = 0 and 1
// A pass that took this many times longer than expected, or shorter, counts as one that took so
// long: it was disturbed, or it is the first of many.
constexpr double kMostSurprise = 1.25;
constexpr double kMostChange = 4;
constexpr double kLeastSeconds = 1e-9;  // where the clock is too coarse

}  // namespace

void CostTracker::observe(int rows, double seconds) {
  check(rows >= 1 && rows <= CostModel::kMaxRows, "a pass is one of the policy's");
  const double x = measured_.verify[rows] - 1;
  const double t = std::max(seconds, kLeastSeconds);
  if (weight_ > 0) {
    add(x, t);
  } else {
    first_[n_first_++] = {x, t};
    if (n_first_ < kFirst) return;
    std::array<double, kFirst> one_row;
    std::ranges::transform(first_, one_row.begin(),
                           [](const auto& pass) { return pass.second / (1 + pass.first); });
    std::ranges::nth_element(one_row, one_row.begin() + kFirst / 2);
    mean_t_ = one_row[kFirst / 2];  // what is expected until the first is added
    for (const auto& [of, took] : first_) add(of, took);
  }
  for (int m = 2; m <= CostModel::kMaxRows; ++m)
    costs_.verify[m] = 1 + change_ * (measured_.verify[m] - 1);
}

void CostTracker::add(double x, double seconds) {
  const double t = std::clamp(seconds, expected(x) / kMostSurprise, expected(x) * kMostSurprise);
  weight_ = weight_ * kKept + 1;
  const double dx = x - mean_x_;
  const double dt = t - mean_t_;
  mean_x_ += dx / weight_;
  mean_t_ += dt / weight_;
  xx_ = xx_ * kKept + dx * (x - mean_x_);
  xt_ = xt_ * kKept + dx * (t - mean_t_);
  // The least of sum w (t - a - b x)^2 + kRidge (b - a)^2 along the lines through the means.
  const double held = 1 + mean_x_;
  const double b = (xt_ + kRidge * held * mean_t_) / (xx_ + kRidge * held * held);
  const double a = mean_t_ - b * mean_x_;
  change_ = a > 0 ? std::clamp(b / a, 1 / kMostChange, kMostChange) : kMostChange;
}

}  // namespace paceline
