// Rotary position embedding (Su et al. 2021): angles from one double-precision function of ours, so
// that no machine's libm has a say.
#pragma once

#include <span>
#include <vector>

namespace paceline {

// cos and sin of position * frequency for each pair, rounded to float32: what a row at this
// position is rotated by. Made for each pass anew, about 0.1 us a pair; a table of all positions
// would grow with what a file claims as its context.
//   frequencies: radians a position, below 2^31 / position     cos, sin: frequencies.size() values
void rope_angles(std::span<const double> frequencies, int position, float* cos, float* sin);

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
