#include "measure/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "base/check.h"

namespace paceline::measure {
namespace {

constexpr int kResamples = 2000;
constexpr size_t kFewestPrompts = 3;  // for an interval over other prompts

// `error` is that of the logarithm.
Interval interval_around(double value, double error, double freedom) {
  const double factor = error > 0 ? std::exp(student_limit(freedom) * error) : 1;
  return {value / factor, value * factor};
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of at least two values, over n - 1.
double variance(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum / static_cast<double>(values.size() - 1);
}

// A sum of variances that are each known from a few values, and its degrees of freedom.
class VarianceSum {
 public:
  void add(double variance, double freedom) {
    sum_ += variance;
    squares_ += variance * variance / freedom;
  }
  double sum() const { return sum_; }
  double freedom() const { return squares_ > 0 ? std::max(sum_ * sum_ / squares_, 1.0) : 1; }

 private:
  double sum_ = 0;
  double squares_ = 0;
};

// Sorts them; weights are those of so many values.
double weighted(std::vector<double>& values, const std::vector<double>& weights) {
  std::sort(values.begin(), values.end());
  return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
}

template <class T>
bool all_repeated(const ByPrompt<T>& prompts) {
  return std::all_of(prompts.begin(), prompts.end(),
                     [](const auto& repeats) { return repeats.size() > 1; });
}

// The repeats of one prompt, in logarithms.
struct Repeats {
  double centre = 0;              // their smooth median
  double error2 = 0;              // the square of its error
  std::vector<double> residuals;  // around their mean, widened for their number
  const std::vector<double>* weights = nullptr;
};

// Repeats drawn anew within every prompt. What a prompt adds to the variance is the square of its
// error times that of its mean weight in the median.
Interval over_repeats(const std::vector<Repeats>& prompts, const std::vector<double>& weights,
                      double value, uint64_t seed) {
  const size_t n = prompts.size();
  std::mt19937_64 random(seed);
  std::vector<double> medians;
  std::vector<double> mean_weights(n);
  std::vector<std::pair<double, size_t>> centres(n);  // and their prompts
  std::vector<double> sample;
  for (int i = 0; i < kResamples; ++i) {
    for (size_t p = 0; p < n; ++p) {
      const auto& residuals = prompts[p].residuals;
      sample.resize(residuals.size());
      for (double& drawn : sample) drawn = residuals[random() % residuals.size()];
      centres[p] = {prompts[p].centre + weighted(sample, *prompts[p].weights), p};
    }
    std::sort(centres.begin(), centres.end());
    double sum = 0;
    for (size_t rank = 0; rank < n; ++rank) {
      const auto& [centre, prompt] = centres[rank];
      sum += weights[rank] * centre;
      mean_weights[prompt] += weights[rank] / kResamples;
    }
    medians.push_back(sum);
  }
  VarianceSum parts;
  for (size_t p = 0; p < n; ++p)
    parts.add(mean_weights[p] * mean_weights[p] * prompts[p].error2,
              static_cast<double>(prompts[p].residuals.size() - 1));
  return interval_around(value, std::sqrt(variance(medians)), parts.freedom());
}

// Whole prompts drawn anew; each stands for itself by its centre.
Interval over_prompts(const std::vector<double>& centres, const std::vector<double>& weights,
                      double value, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> medians;
  std::vector<double> sample(centres.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& centre : sample) centre = centres[random() % centres.size()];
    medians.push_back(weighted(sample, weights));
  }
  const auto n = static_cast<double>(centres.size());
  return interval_around(value, std::sqrt(variance(medians) * n / (n - 1)), n - 1);
}

}  // namespace

double half_width(const Interval& interval, double value) {
  return (interval.high - interval.low) / 2 / value;
}

Estimate median_of_prompts(const ByPrompt<double>& values, uint64_t seed) {
  check(!values.empty(), "an estimate is over at least one prompt");
  std::map<size_t, std::vector<double>> weights;  // by the number of values
  const auto weights_of = [&](size_t n) -> const std::vector<double>& {
    auto& known = weights[n];
    if (known.empty()) known = smooth_median_weights(n);
    return known;
  };
  std::vector<Repeats> prompts;
  std::vector<double> centres;
  for (std::vector<double> logs : values) {
    check(!logs.empty(), "a prompt is measured at least once");
    for (double& log : logs) log = std::log(log);
    Repeats repeats;
    repeats.weights = &weights_of(logs.size());
    repeats.centre = weighted(logs, *repeats.weights);
    if (logs.size() > 1) {
      const auto n = static_cast<double>(logs.size());
      const double middle = mean(logs);
      repeats.error2 = variance(logs) / n;
      for (const double log : logs)
        repeats.residuals.push_back((log - middle) * std::sqrt(n / (n - 1)));
    }
    centres.push_back(repeats.centre);
    prompts.push_back(std::move(repeats));
  }
  const auto& of_prompts = weights_of(centres.size());
  std::vector<double> sorted = centres;
  const double value = std::exp(weighted(sorted, of_prompts));
  Estimate estimate{.value = value, .interval = {}, .interval_prompts = {}};
  if (all_repeated(values)) estimate.interval = over_repeats(prompts, of_prompts, value, seed);
  if (centres.size() >= kFewestPrompts)
    estimate.interval_prompts = over_prompts(centres, of_prompts, value, seed);
  return estimate;
}

Estimate rate_ratio(const ByPrompt<TimedPair>& pairs) {
  check(!pairs.empty(), "an estimate is over at least one prompt");
  Timed run;
  Timed plain;
  for (const auto& repeats : pairs) {
    for (const TimedPair& pair : repeats) {
      run.tokens += pair.run.tokens;
      run.seconds += pair.run.seconds;
      plain.tokens += pair.plain.tokens;
      plain.seconds += pair.plain.seconds;
    }
  }
  const double value = run.tokens / run.seconds / (plain.tokens / plain.seconds);
  Estimate estimate{.value = value, .interval = {}, .interval_prompts = {}};

  // How far each pair moves the logarithm of the ratio; all of them sum to 0.
  VarianceSum repeated;
  std::vector<double> of_prompts;
  for (const auto& repeats : pairs) {
    std::vector<double> moves;
    moves.reserve(repeats.size());
    for (const TimedPair& pair : repeats)
      moves.push_back((pair.run.tokens / run.tokens - pair.plain.tokens / plain.tokens) -
                      (pair.run.seconds / run.seconds - pair.plain.seconds / plain.seconds));
    const auto count = static_cast<double>(moves.size());
    if (moves.size() > 1) repeated.add(count * variance(moves), count - 1);
    of_prompts.push_back(count * mean(moves));
  }
  if (all_repeated(pairs))
    estimate.interval = interval_around(value, std::sqrt(repeated.sum()), repeated.freedom());
  if (pairs.size() >= kFewestPrompts) {
    const auto n = static_cast<double>(pairs.size());
    estimate.interval_prompts = interval_around(value, std::sqrt(n * variance(of_prompts)), n - 1);
  }
  return estimate;
}

}  // namespace paceline::measure
