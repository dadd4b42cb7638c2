// Operations on rows around the products. Rows or columns are handed out to threads when there are
// enough of them to be worth it; bits do not depend on that.
#pragma once

#include <cstdint>

#include "base/mat.h"
#include "base/threads.h"
#include "kernels/kernels.h"

namespace paceline {

// Hands out n parts of work on so many elements, whole grains of parts at a time: body(begin, end).
// Below 8,192 elements a hand-over to another thread costs as much as it saves, 2 us of work, and
// more where the threads share no cache.
template <class Body>
void hand_out(int64_t n, int64_t grain, int64_t elements, const Kernels& kernels, Body&& body) {
  if (elements >= 8192)
    kernels.pool->split(n, grain, body);
  else
    body(0, n);
}

// y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight (Zhang and Sennrich 2019). y may be x.
void rms_norm(Mat<const float> x, const float* weight, float eps, Mat<float> y,
              const Kernels& kernels);

// gate = silu(gate) * up (SwiGLU: Shazeer 2020), silu(x) = x / (1 + exp(-x)); or with gelu(x) =
// x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) in place of silu (Hendrycks and Gimpel 2016;
// GEGLU: Shazeer 2020). Of columns [first, last) of all rows, by the calling thread.
enum class Gate { Silu, Gelu };
void apply_gate(Gate kind, Mat<float> gate, Mat<const float> up, int first, int last,
                const KernelTable& table);

// x = cap * tanh(x / cap): keeps every element between -cap and cap. cap > 0.
void soft_cap(Mat<float> x, float cap, const Kernels& kernels);

// to = to + x.
void add(Mat<float> to, Mat<const float> x, const Kernels& kernels);

}  // namespace paceline
