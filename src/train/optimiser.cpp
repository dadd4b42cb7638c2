#include "train/optimiser.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "kernels/rope.h"

namespace paceline::train {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements of one piece of work

}  // namespace

Optimiser::Optimiser(const Layout& layout, const OptimiserOptions& options)
    : layout_(layout), options_(options), m_(layout.size()), v_(layout.size()) {
  if (options.average > 0) average_.resize(layout.size());
}

double Optimiser::norm(std::span<const float> gradient, const Tools& tools) const {
  double sum = 0;
  for (const Parameter& p : layout_.parameters())
    if (!p.frozen) sum += tools.table->sum_squares(gradient.data() + p.offset, p.count);
  return std::sqrt(sum);
}

bool Optimiser::step(float rate, std::span<float> weights, std::span<float> gradient,
                     const Tools& tools) {
  check(std::ssize(weights) == layout_.size() && std::ssize(gradient) == layout_.size(),
        "weights and gradient have the layout's size");
  const double size = norm(gradient, tools);
  const bool finite = std::isfinite(size);
  if (finite) {
    ++steps_;
    if (steps_ == 1 && !average_.empty()) std::ranges::copy(weights, average_.begin());
    const auto steps = static_cast<double>(steps_);
    AdamArgs args{.rate = rate,
                  .decay = 0,
                  .beta1 = options_.beta1,
                  .beta2 = options_.beta2,
                  .correct1 = static_cast<float>(1 / (1 - std::pow(options_.beta1, steps))),
                  .correct2 = static_cast<float>(1 / (1 - std::pow(options_.beta2, steps))),
                  .eps = options_.eps,
                  .gradient_scale = 1};
    if (options_.clip > 0 && size > options_.clip)
      args.gradient_scale = static_cast<float>(options_.clip / size);
    for (const Parameter& p : layout_.parameters()) {
      if (p.frozen) continue;
      args.decay = p.is_matrix ? rate * options_.decay : 0;
      tools.pool->split(p.count, kGrain, [&](int64_t begin, int64_t end) {
        const int64_t at = p.offset + begin;
        tools.table->adam(args, gradient.data() + at, end - begin, weights.data() + at,
                          m_.data() + at, v_.data() + at);
        if (average_.empty()) return;
        tools.table->scale(average_.data() + at, static_cast<int>(end - begin), options_.average);
        tools.table->add_scaled(weights.data() + at, 1 - options_.average,
                                static_cast<int>(end - begin), average_.data() + at);
      });
    }
  }
  std::ranges::fill(gradient, 0.0f);
  return finite;
}

std::span<const float> Optimiser::averaged(std::span<const float> weights) const {
  return average_.empty() || steps_ == 0 ? weights : std::span<const float>(average_);
}

float scheduled_rate(float peak, int64_t step, int64_t warmup, double share) {
  constexpr float kLeast = 0.05f;
  double sine = 0;
  double cosine = 0;
  sin_cos_double(std::numbers::pi * std::clamp(share, 0.0, 1.0), &sine, &cosine);
  const float falling = kLeast + (1 - kLeast) * static_cast<float>(0.5 * (1 + cosine));
  const float rising =
      step < warmup ? static_cast<float>(step + 1) / static_cast<float>(warmup) : 1.0f;
  return peak * rising * falling;
}

}  // namespace paceline::train
