// Rotary position embedding (Su et al. 2021): angles from one double-precision function of ours, so
// that no machine's libm has a say.
#pragma once

#include <span>
#include <vector>

namespace paceline {

// cos and sin of position * frequency, rounded to float32; [position][head_dim / 2].
class RopeTable {
 public:
  // frequencies: one a pair, in radians a position.
  RopeTable(std::span<const double> frequencies, int positions, double amplitude = 1.0);

  const float* cos(int position) const { return cos_.data() + offset(position); }
  const float* sin(int position) const { return sin_.data() + offset(position); }
  int positions() const { return positions_; }

 private:
  size_t offset(int position) const { return static_cast<size_t>(position) * half_; }

  size_t half_;
  int positions_;
  std::vector<float> cos_;
  std::vector<float> sin_;
};

// theta^(-2i / head_dim) for i < head_dim / 2.
std::vector<double> rope_frequencies(double theta, int head_dim);

// Llama 3.1's scaling: long wavelengths slowed down by `factor`, short ones kept, a ramp between.
struct Llama3Scaling {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  double original_positions;
};
void scale_llama3(std::span<double> frequencies, const Llama3Scaling& scaling);

// Our own e^x, ln x and sine, in double precision; good to a few ulp over the ranges used here.
double exp_double(double x);                                      // |x| < 700
double log_double(double x);                                      // finite x > 0
void sin_cos_double(double angle, double* sine, double* cosine);  // |angle| < 2^31

}  // namespace paceline
