#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"

namespace paceline::measure {
namespace {

// The continued fraction of the incomplete beta function by Lentz's method (Press et al., Numerical
// Recipes, 6.4); converges fast for x below (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr int kMostTerms = 10'000;
  constexpr double kSmallest = 1e-300;
  const auto not_zero = [](double value) {
    return std::abs(value) < kSmallest ? kSmallest : value;
  };
  double c = 1;
  double d = 1 / not_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    const double change = d * c;
    fraction *= change;
    if (std::abs(change - 1) < 1e-14) break;
  }
  return fraction;
}

// I_x(a, b), the distribution function of Beta(a, b).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double median(std::vector<double> values) {
  check(!values.empty(), "a median is of at least one value");
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval median_interval(const std::vector<double>& values, uint64_t seed) {
  constexpr int kResamples = 2000;
  std::mt19937_64 random(seed);
  std::vector<double> medians;
  std::vector<double> sample(values.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : sample) value = values[random() % values.size()];
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kResamples * 25 / 1000], medians[kResamples * 975 / 1000 - 1]};
}

std::vector<double> smooth_median_weights(size_t n) {
  const auto count = static_cast<double>(n);
  std::vector<double> weights;
  double before = 0;
  for (size_t i = 1; i <= n; ++i) {
    const double up_to =
        incomplete_beta(static_cast<double>(i) / count, (count + 1) / 2, (count + 1) / 2);
    weights.push_back(up_to - before);
    before = up_to;
  }
  return weights;
}

double student_limit(double freedom) {
  check(freedom >= 1, "Student's t has at least one degree of freedom");
  double low = 0;
  double high = 13;
  for (int i = 0; i < 50; ++i) {
    const double t = (low + high) / 2;
    const double beyond = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
    (beyond > 0.05 ? low : high) = t;
  }
  return high;
}

}  // namespace paceline::measure
