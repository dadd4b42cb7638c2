#include "train/row_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/rope.h"
#include "train/attention.h"
#include "train/choose.h"
#include "train/optimiser.h"
#include "train/random.h"

namespace paceline::train {
namespace {

std::vector<float> random_values(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& x : values) x = random.normal();
  return values;
}

// The slope of f at x along `direction`, from both sides; f computes in double.
double slope(const std::function<double(const std::vector<double>&)>& f,
             const std::vector<float>& x, const std::vector<float>& direction) {
  constexpr double kStep = 1e-5;
  double ends[2];
  for (int side = 0; side < 2; ++side) {
    std::vector<double> at(x.begin(), x.end());
    for (size_t i = 0; i < at.size(); ++i) at[i] += (side == 0 ? -kStep : kStep) * direction[i];
    ends[side] = f(at);
  }
  return (ends[1] - ends[0]) / (2 * kStep);
}
double along(const std::vector<float>& gradient, const std::vector<float>& direction) {
  double sum = 0;
  for (size_t i = 0; i < gradient.size(); ++i) sum += double(gradient[i]) * direction[i];
  return sum;
}

// Calls body with tools of every table.
void on_every_table(const std::function<void(const Tools&)>& body) {
  ThreadPool pool(2);
  for (const TrainTable* table : train_tables()) {
    SCOPED_TRACE(table->name);
    body({table, &pool});
  }
}

constexpr int kRows = 5;
constexpr int kWidths[] = {1, 15, 16, 33, 64};

TEST(RowOps, GradientsOfTheNormAreThoseOfFiniteDifferences) {
  on_every_table([](const Tools& tools) {
    for (const int dim : kWidths) {
      const size_t n = static_cast<size_t>(kRows) * dim;
      const auto x = random_values(n, 1);
      const auto weight = random_values(dim, 2);
      const auto d_y = random_values(n, 3);
      constexpr float kEps = 1e-3f;
      const auto loss = [&](const std::vector<double>& at, const std::vector<double>& w) {
        double sum = 0;
        for (int r = 0; r < kRows; ++r) {
          double squares = 0;
          for (int i = 0; i < dim; ++i) squares += at[r * dim + i] * at[r * dim + i];
          const double s = 1 / std::sqrt(squares / dim + kEps);
          for (int i = 0; i < dim; ++i) sum += d_y[r * dim + i] * at[r * dim + i] * s * w[i];
        }
        return sum;
      };
      std::vector<float> y(n), inverse(kRows), d_x(n, 1.0f), d_weight(dim);
      auto gradient_of_y = d_y;
      rms_norm({x.data(), kRows, dim}, weight.data(), kEps, {{y.data(), kRows, dim}, 0, dim},
               inverse.data(), tools);
      rms_norm_back({x.data(), kRows, dim}, weight.data(), inverse.data(),
                    {{gradient_of_y.data(), kRows, dim}, 0, dim}, true, {d_x.data(), kRows, dim},
                    d_weight.data(), tools);
      for (float& d : d_x) d -= 1.0f;  // it was added
      const std::vector<double> x_double(x.begin(), x.end());
      const std::vector<double> w_double(weight.begin(), weight.end());
      const auto to_x = random_values(n, 4);
      const auto to_w = random_values(dim, 5);
      EXPECT_NEAR(along(d_x, to_x),
                  slope([&](const auto& at) { return loss(at, w_double); }, x, to_x), 1e-3);
      EXPECT_NEAR(along(d_weight, to_w),
                  slope([&](const auto& at) { return loss(x_double, at); }, weight, to_w), 1e-3);
    }
  });
}

TEST(RowOps, GradientsOfSwigluAreThoseOfFiniteDifferences) {
  on_every_table([](const Tools& tools) {
    for (const int dim : kWidths) {
      const size_t n = static_cast<size_t>(kRows) * dim;
      const auto gate = random_values(n, 1);
      const auto up = random_values(n, 2);
      const auto d_y = random_values(n, 3);
      const auto loss = [&](const auto& g, const auto& u) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i) sum += d_y[i] * g[i] / (1 + std::exp(-double(g[i]))) * u[i];
        return sum;
      };
      std::vector<float> d_gate(n), d_up(n);
      swiglu_back({gate.data(), kRows, dim}, {up.data(), kRows, dim}, {d_y.data(), kRows, dim},
                  {d_gate.data(), kRows, dim}, {d_up.data(), kRows, dim}, tools);
      const auto direction = random_values(n, 4);
      EXPECT_NEAR(along(d_gate, direction),
                  slope([&](const auto& at) { return loss(at, up); }, gate, direction), 1e-3);
      EXPECT_NEAR(along(d_up, direction),
                  slope([&](const auto& at) { return loss(gate, at); }, up, direction), 1e-3);
    }
  });
}

TEST(RowOps, TheRotationsGradientIsTheRotationBack) {
  on_every_table([](const Tools& tools) {
    constexpr int kHeadDim = 20, kHeads = 3;
    const Angles angles = make_angles(rope_frequencies(100, kHeadDim), 9);
    const int positions[kRows] = {0, 3, 8, 1, 1};
    const auto x = random_values(static_cast<size_t>(kRows) * kHeads * kHeadDim, 1);
    auto turned = x;
    const Mat<float> rows(turned.data(), kRows, kHeads * kHeadDim);
    rope(rows, kHeadDim, positions, angles, false, tools);
    // (a, b) at position p and frequency 1 (the first): a cos p - b sin p.
    EXPECT_NEAR(
        rows.row(1)[0],
        x[kHeads * kHeadDim] * std::cos(3.0) - x[kHeads * kHeadDim + kHeadDim / 2] * std::sin(3.0),
        1e-5);
    rope(rows, kHeadDim, positions, angles, true, tools);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(turned[i], x[i], 1e-5);
  });
}

TEST(RowOps, ABiasIsAddedToEveryRowAndItsGradientIsTheSumOfRows) {
  on_every_table([](const Tools& tools) {
    constexpr int kDim = 70;
    const auto bias = random_values(kDim, 1);
    auto x = random_values(static_cast<size_t>(kRows) * kDim, 2);
    const auto before = x;
    add_bias(bias.data(), {x.data(), kRows, kDim}, tools);
    std::vector<float> d_bias(kDim, 0.5f);
    add_bias_back({before.data(), kRows, kDim}, d_bias.data(), tools);
    for (int i = 0; i < kDim; ++i) {
      float sum = 0.5f;
      for (int r = 0; r < kRows; ++r) {
        sum += before[r * kDim + i];
        EXPECT_EQ(x[r * kDim + i], before[r * kDim + i] + bias[i]);
      }
      EXPECT_EQ(d_bias[i], sum);
    }
  });
}

// Attention over two depths of one sequence of 130 rows, more than a block, and one of three.
struct AttentionCase {
  static constexpr int kDim = 8, kHeads = 4, kKvHeads = 2, kAll = 133;
  std::vector<Segment> segments = {{0, 130}, {130, 3}};
  std::vector<float> q[2], k[2], v[2], d_out[2];
  int base;

  explicit AttentionCase(int base_depth) : base(base_depth) {
    for (int d = 0; d < 2; ++d) {
      q[d] = random_values(static_cast<size_t>(kAll) * kHeads * kDim, 10 + d);
      k[d] = random_values(static_cast<size_t>(kAll) * kKvHeads * kDim, 20 + d);
      v[d] = random_values(static_cast<size_t>(kAll) * kKvHeads * kDim, 30 + d);
      d_out[d] = random_values(q[d].size(), 40 + d);
    }
  }

  // out of depth 2, plainly.
  template <class Q, class K, class V>
  double loss(const Q& q2, const K& k1, const V& v1, const K& k2, const V& v2) const {
    double total = 0;
    for (const Segment& s : segments)
      for (int row = s.first; row < s.first + s.rows; ++row)
        for (int head = 0; head < kHeads; ++head) {
          const int kv = head / (kHeads / kKvHeads);
          const K& base_k = base == 1 ? k1 : k2;
          const V& base_v = base == 1 ? v1 : v2;
          struct Seen {
            const K* keys;
            const V* values;
            int row;
          };
          std::vector<Seen> seen;
          for (int p = s.first; p <= row; ++p) seen.push_back({&base_k, &base_v, p});
          if (base == 1) seen.push_back({&k2, &v2, row});
          double sum = 0;
          double out[kDim] = {};
          for (const Seen& at : seen) {
            double score = 0;
            for (int i = 0; i < kDim; ++i)
              score += q2[(row * kHeads + head) * kDim + i] *
                       (*at.keys)[(at.row * kKvHeads + kv) * kDim + i];
            const double e = std::exp(score / std::sqrt(double(kDim)));
            sum += e;
            for (int i = 0; i < kDim; ++i)
              out[i] += e * (*at.values)[(at.row * kKvHeads + kv) * kDim + i];
          }
          for (int i = 0; i < kDim; ++i)
            total += out[i] / sum * d_out[1][(row * kHeads + head) * kDim + i];
        }
    return total;
  }
};

TEST(Attention, GradientsAreThoseOfFiniteDifferencesUnderBothMasks) {
  for (const int base : {1, 2}) {
    AttentionCase c(base);
    on_every_table([&](const Tools& tools) {
      using Values = std::vector<float>;
      const size_t q_size = c.q[0].size();
      const size_t k_size = c.k[0].size();
      Values out(q_size), log_sums(static_cast<size_t>(c.kAll) * c.kHeads), d_q(q_size);
      Values d_k[2] = {Values(k_size), Values(k_size)};
      Values d_v[2] = {Values(k_size), Values(k_size)};
      std::vector<AttentionRows> rows(2);
      const auto mat = [&](Values& values, int heads) {
        return Mat<float>(values.data(), c.kAll, heads);
      };
      for (int d = 0; d < 2; ++d)
        rows[d] = {.q = mat(c.q[d], c.kHeads * c.kDim),
                   .k = mat(c.k[d], c.kKvHeads * c.kDim),
                   .v = mat(c.v[d], c.kKvHeads * c.kDim),
                   .out = mat(out, c.kHeads * c.kDim),
                   .log_sums = mat(log_sums, c.kHeads),
                   .d_q = mat(d_q, c.kHeads * c.kDim),
                   .d_k = mat(d_k[d], c.kKvHeads * c.kDim),
                   .d_v = mat(d_v[d], c.kKvHeads * c.kDim),
                   .d_out = mat(c.d_out[1], c.kHeads * c.kDim)};
      AttentionScratch scratch;
      const AttentionShape shape{c.kHeads, c.kKvHeads, c.kDim};
      attend(c.segments, rows, base, 2, shape, scratch, tools);
      attend_back(c.segments, rows, base, 2, shape, scratch, tools);

      const double near = tools.table->per_unit == 1 ? 2e-3 : 0.2;  // of sums over 1,000 to 4,000
      const auto plain = [&](const auto& q, const auto& k1, const auto& v1, const auto& k2,
                             const auto& v2) {
        using Double = std::vector<double>;
        const auto wide = [](const auto& x) { return Double(x.begin(), x.end()); };
        return c.loss(wide(q), wide(k1), wide(v1), wide(k2), wide(v2));
      };
      const double wanted = plain(c.q[1], c.k[0], c.v[0], c.k[1], c.v[1]);
      EXPECT_NEAR(along(out, c.d_out[1]), wanted, near) << "base " << base;
      const auto to_q = random_values(q_size, 50);
      const auto to_k = random_values(k_size, 51);
      EXPECT_NEAR(along(d_q, to_q),
                  slope([&](const auto& at) { return plain(at, c.k[0], c.v[0], c.k[1], c.v[1]); },
                        c.q[1], to_q),
                  near)
          << "base " << base;
      EXPECT_NEAR(along(d_k[0], to_k),
                  slope([&](const auto& at) { return plain(c.q[1], at, c.v[0], c.k[1], c.v[1]); },
                        c.k[0], to_k),
                  near)
          << "base " << base;
      EXPECT_NEAR(along(d_v[0], to_k),
                  slope([&](const auto& at) { return plain(c.q[1], c.k[0], at, c.k[1], c.v[1]); },
                        c.v[0], to_k),
                  near)
          << "base " << base;
      EXPECT_NEAR(along(d_k[1], to_k),
                  slope([&](const auto& at) { return plain(c.q[1], c.k[0], c.v[0], at, c.v[1]); },
                        c.k[1], to_k),
                  near)
          << "base " << base;
      EXPECT_NEAR(along(d_v[1], to_k),
                  slope([&](const auto& at) { return plain(c.q[1], c.k[0], c.v[0], c.k[1], at); },
                        c.v[1], to_k),
                  near)
          << "base " << base;
    });
  }
}

TEST(Optimiser, StepsAreThoseOfAdamW) {
  on_every_table([](const Tools& tools) {
    Layout layout;
    layout.add("mtp.fc.weight", {3, 7});
    layout.add("mtp.norm.weight", {5});
    std::vector<float> weights = random_values(26, 1);
    std::vector<double> w(weights.begin(), weights.end()), m(26), v(26);
    Optimiser optimiser(layout, {.decay = 0.1f, .clip = 1});
    for (int step = 1; step <= 3; ++step) {
      std::vector<float> gradient = random_values(26, 10 + step);  // of norm about 5
      double norm = 0;
      for (const float g : gradient) norm += double(g) * g;
      norm = std::sqrt(norm);
      EXPECT_NEAR(optimiser.norm(gradient, tools), norm, 1e-5);
      for (int i = 0; i < 26; ++i) {
        const double g = gradient[i] / std::max(norm, 1.0);
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        const double rate = 0.01;
        const double decay = i < 21 ? rate * 0.1 * w[i] : 0;  // of the matrix
        w[i] -= decay + rate * (m[i] / (1 - std::pow(0.9, step))) /
                            (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
      }
      ASSERT_TRUE(optimiser.step(0.01f, weights, gradient, tools));
      for (int i = 0; i < 26; ++i) EXPECT_NEAR(weights[i], w[i], 1e-5) << "step " << step;
    }
  });
}

}  // namespace
}  // namespace paceline::train
