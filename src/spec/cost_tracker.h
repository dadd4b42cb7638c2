// What passes cost by now: the curve that was measured at the start, made flatter or steeper as the
// passes of the run itself turn out.
#pragma once

#include <array>
#include <utility>

#include "spec/policy.h"

namespace paceline {

// A machine does not stay as it was when it was measured: others load it, its clock falls, and
// behind a longer context every row costs more. Seconds of a pass of m rows are taken as
//   t(m) = a + b x(m),  x(m) = r(m) - 1 as measured,
// a straight line through the passes so far, later ones weighing more (recursive least squares with
// forgetting; Ljung and Soderstrom 1983, with the slope held at the measured one, b = a, by a ridge
// that passes of one width alone do not move). Then r(m) = 1 + b / a x(m) from now on. No pass
// counts as more than 1.25 times longer or shorter than what was expected of it; of the first ten
// that is what their median says with the curve as measured.
class CostTracker {
 public:
  explicit CostTracker(const CostModel& measured) : measured_(measured), costs_(measured) {}

  // A pass of `rows` rows, 1 to CostModel::kMaxRows, of one sequence.
  void observe(int rows, double seconds);
  const CostModel& costs() const { return costs_; }

 private:
  static constexpr size_t kFirst = 10;  // passes from which on there is something to expect

  // Of a pass with this x.
  double expected(double x) const { return mean_t_ * (1 + change_ * x) / (1 + change_ * mean_x_); }
  void add(double x, double seconds);

  CostModel measured_;
  CostModel costs_;
  double change_ = 1;                                         // b / a, within bounds
  std::array<std::pair<double, double>, kFirst> first_ = {};  // x and seconds of each
  size_t n_first_ = 0;
  // Over the passes so far, each with its weight.
  double weight_ = 0;
  double mean_x_ = 0;
  double mean_t_ = 0;
  double xx_ = 0;  // sum of squared deviations of x
  double xt_ = 0;  // sum of products of the deviations of x and t
};

}  // namespace paceline
