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

// The variance of a sum of moves, one of every repeat of every prompt, from how they differ.
struct RepeatVariance {
  double apart = 0;   // as if no repeat knew of another
  double common = 0;  // what rounds over all prompts add
  double freedom = 1;
};

RepeatVariance variance_of_sum(const ByPrompt<double>& moves) {
  RepeatVariance result;
  VarianceSum parts;
  size_t rounds = moves[0].size();
  for (const auto& repeats : moves) rounds = std::min(rounds, repeats.size());
  std::vector<double> by_round(rounds);
  for (const auto& repeats : moves) {
    const auto count = static_cast<double>(repeats.size());
    parts.add(count * variance(repeats), count - 1);
    const double centre = mean(repeats);
    for (size_t i = 0; i < rounds; ++i) by_round[i] += repeats[i] - centre;
  }
  result.apart = parts.sum();
  const auto n = static_cast<double>(rounds);
  result.common = std::max(0.0, n * variance(by_round) - result.apart);
  parts.add(result.common, n - 1);
  result.freedom = parts.freedom();
  return result;
}

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
  double centre = 0;  // their smooth median
  std::vector<double> logs;
  std::vector<double> residuals;  // around their mean, widened for their number
  const std::vector<double>* weights = nullptr;
};

// Repeats drawn anew within every prompt. What a repeat moves is its part of its prompt times the
// mean weight of that in the median.
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
  ByPrompt<double> moves;
  for (size_t p = 0; p < n; ++p) {
    auto& of_prompt = moves.emplace_back(prompts[p].logs);
    for (double& move : of_prompt) move *= mean_weights[p] / static_cast<double>(of_prompt.size());
  }
  const RepeatVariance repeated = variance_of_sum(moves);
  return interval_around(value, std::sqrt(variance(medians) + repeated.common), repeated.freedom);
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
  for (const std::vector<double>& repeated : values) {
    check(!repeated.empty(), "a prompt is measured at least once");
    Repeats repeats;
    for (const double value : repeated) repeats.logs.push_back(std::log(value));
    std::vector<double> logs = repeats.logs;
    repeats.weights = &weights_of(logs.size());
    repeats.centre = weighted(logs, *repeats.weights);
    if (logs.size() > 1) {
      const auto n = static_cast<double>(logs.size());
      const double middle = mean(logs);
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
  ByPrompt<double> moves;
  std::vector<double> of_prompts;
  for (const auto& repeats : pairs) {
    auto& of_prompt = moves.emplace_back();
    for (const TimedPair& pair : repeats)
      of_prompt.push_back((pair.run.tokens / run.tokens - pair.plain.tokens / plain.tokens) -
                          (pair.run.seconds / run.seconds - pair.plain.seconds / plain.seconds));
    of_prompts.push_back(std::accumulate(of_prompt.begin(), of_prompt.end(), 0.0));
  }
  if (all_repeated(pairs)) {
    const RepeatVariance repeated = variance_of_sum(moves);
    estimate.interval =
        interval_around(value, std::sqrt(repeated.apart + repeated.common), repeated.freedom);
  }
  if (pairs.size() >= kFewestPrompts) {
    const auto n = static_cast<double>(pairs.size());
    estimate.interval_prompts = interval_around(value, std::sqrt(n * variance(of_prompts)), n - 1);
  }
  return estimate;
}

}  // namespace paceline::measure
