// AdamW (Loshchilov and Hutter 2019) with clipping by the global norm, over a Layout's run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/parameters.h"
#include "train/product.h"

namespace paceline::train {

struct OptimiserOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float decay = 0.01f;  // of matrices, times the rate
  float clip = 1.0f;    // largest global norm of a gradient; 0: none
  float average = 0;    // of the weights' moving average, 0: none; 0.999 forgets in 1,000 steps
};

class Optimiser {
 public:
  Optimiser(const Layout& layout, const OptimiserOptions& options);

  // The gradient's global norm, in an order that threads do not change.
  double norm(std::span<const float> gradient, const Tools& tools) const;

  // One step; `gradient` is zeroed for the next. False, and nothing changed but that, where the
  // gradient is not finite.
  bool step(float rate, std::span<float> weights, std::span<float> gradient, const Tools& tools);

  int64_t steps() const { return steps_; }
  // The moving average where there is one, else, and before the first step, the weights themselves.
  std::span<const float> averaged(std::span<const float> weights) const;

  // Everything that a resumed run needs, in one order: m, v, then the average.
  std::span<float> m() { return m_; }
  std::span<float> v() { return v_; }
  std::span<float> average() { return average_; }
  std::span<const float> m() const { return m_; }
  std::span<const float> v() const { return v_; }
  std::span<const float> average() const { return average_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  const Layout& layout_;
  OptimiserOptions options_;
  int64_t steps_ = 0;
  std::vector<float> m_, v_, average_;
};

// Learning rate of a step: rises linearly over `warmup` steps, then falls along half a cosine to a
// twentieth. share: of the run that is over, 0 to 1.
float scheduled_rate(float peak, int64_t step, int64_t warmup, double share);

}  // namespace paceline::train
