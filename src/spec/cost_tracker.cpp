#include "spec/cost_tracker.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

constexpr double kKept = 0.99;  // of a pass's weight, by the next: a hundred passes count
constexpr double kRidge = 0.1;  // weight of the measured slope, as of passes with x = 0 and 1
// A pass that took this many times longer than expected, or shorter, counts as one that took so
// long: it was disturbed, or it is the first of many.
constexpr double kMostSurprise = 1.5;
constexpr double kExpects = 10;    // passes from which on there is something to expect
constexpr double kMostChange = 4;  // of the slope

}  // namespace

void CostTracker::observe(int rows, double seconds) {
  check(rows >= 1 && rows <= CostModel::kMaxRows, "a pass is one of the policy's");
  const double x = measured_.verify[rows] - 1;
  double t = seconds;
  if (weight_ >= kExpects) {
    const double expected = mean_t_ + slope_ * (x - mean_x_);
    t = std::clamp(t, expected / kMostSurprise, expected * kMostSurprise);
  }
  weight_ = weight_ * kKept + 1;
  const double dx = x - mean_x_;
  const double dt = t - mean_t_;
  mean_x_ += dx / weight_;
  mean_t_ += dt / weight_;
  xx_ = xx_ * kKept + dx * (x - mean_x_);
  xt_ = xt_ * kKept + dx * (t - mean_t_);
  // The least of sum w (t - a - b x)^2 + kRidge (b - a)^2 along the lines through the means.
  slope_ =
      (xt_ + kRidge * (1 + mean_x_) * mean_t_) / (xx_ + kRidge * (1 + mean_x_) * (1 + mean_x_));
  const double one_row = mean_t_ - slope_ * mean_x_;
  if (mean_t_ <= 0) return;  // the clock is too coarse
  const double change =
      one_row > 0 ? std::clamp(slope_ / one_row, 1 / kMostChange, kMostChange) : kMostChange;
  for (int m = 2; m <= CostModel::kMaxRows; ++m)
    costs_.verify[m] = 1 + change * (measured_.verify[m] - 1);
}

}  // namespace paceline
