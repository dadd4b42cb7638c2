// Operations on rows around the products. Rows are handed out to threads when there are enough of
// them to be worth it; bits do not depend on that.
#pragma once

#include "base/mat.h"
#include "kernels/kernels.h"

namespace paceline {

// y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight (Zhang and Sennrich 2019). y may be x.
void rms_norm(Mat<const float> x, const float* weight, float eps, Mat<float> y,
              const Kernels& kernels);

// gate = silu(gate) * up (SwiGLU: Shazeer 2020), silu(x) = x / (1 + exp(-x)).
void silu_mul(Mat<float> gate, Mat<const float> up, const Kernels& kernels);

}  // namespace paceline
