#include "kernels/rope.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace paceline {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kTwoPi = 6.28318530717958647693;

// The nearest integer without libm: adding and taking away 1.5 * 2^52.
double nearest_integer(double x) {
  constexpr double kMagic = 6755399441055744.0;
  return (x + kMagic) - kMagic;
}

}  // namespace

double exp_double(double x) {
  const double n = nearest_integer(x / kLn2);
  const double r = std::fma(-n, 2.319046813846299558e-17, std::fma(-n, kLn2, x));
  double p = 1.0;
  for (int k = 18; k >= 1; --k) p = std::fma(p, r / k, 1.0);
  const auto exponent = static_cast<int64_t>(n);
  return p * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

double log_double(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 atanh(t), |t| < 0.172
  const double t = (m - 1.0) / (m + 1.0);
  const double t2 = t * t;
  double sum = 0.0;
  for (int k = 25; k >= 1; k -= 2) sum = std::fma(sum, t2, 1.0 / k);
  return std::fma(static_cast<double>(exponent), kLn2, 2.0 * t * sum);
}

void sin_cos_double(double angle, double* sine, double* cosine) {
  // Quarter turns out, in two parts of pi / 2; then Taylor series on |r| <= pi / 4.
  const double n = nearest_integer(angle * (4.0 / kTwoPi));
  double r = std::fma(-n, 1.57079632679489661923, angle);
  r = std::fma(-n, 6.12323399573676603587e-17, r);
  const double r2 = r * r;
  double s = 1.0;
  double c = 1.0;
  for (int k = 20; k >= 2; k -= 2) {
    s = std::fma(-s * r2, 1.0 / (k * (k + 1)), 1.0);
    c = std::fma(-c * r2, 1.0 / (k * (k - 1)), 1.0);
  }
  s *= r;
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      break;
    case 1:
      std::swap(s, c);
      c = -c;
      break;
    case 2:
      s = -s;
      c = -c;
      break;
    default:
      std::swap(s, c);
      s = -s;
  }
  *sine = s;
  *cosine = c;
}

void rope_angles(std::span<const double> frequencies, int position, float* cos, float* sin) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double s = 0;
    double c = 0;
    sin_cos_double(position * frequencies[i], &s, &c);
    cos[i] = static_cast<float>(c);
    sin[i] = static_cast<float>(s);
  }
}

std::vector<double> rope_frequencies(double theta, int head_dim) {
  std::vector<double> frequencies(head_dim / 2);
  const double log_theta = log_double(theta);
  for (int i = 0; i < head_dim / 2; ++i)
    frequencies[i] = exp_double(-2.0 * i / head_dim * log_theta);
  return frequencies;
}

void scale_llama3(std::span<double> frequencies, const Llama3Scaling& scaling) {
  const double a = scaling.low_freq_factor;
  const double b = scaling.high_freq_factor;
  for (double& frequency : frequencies) {
    const double turns = scaling.original_positions * frequency / kTwoPi;  // L0 / wavelength
    if (turns > b) continue;
    const double slowed = frequency / scaling.factor;
    const double m = (turns - a) / (b - a);
    frequency = turns < a ? slowed : (1.0 - m) * slowed + m * frequency;
  }
}

}  // namespace paceline
