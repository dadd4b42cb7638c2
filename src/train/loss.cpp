#include "train/loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace paceline::train {
namespace {

// Rows whose logits stand in memory at a time: enough to be worth reading W for, few enough to stay
// in the last-level cache.
constexpr int kChunk = 192;

// Floats from one row of logits to the next; see multiply_apart.
int64_t pitch_of(int n_words) { return n_words + 16; }

}  // namespace

VocabularyLoss::VocabularyLoss(Mat<const float> words, const Tools& tools) {
  forward_.set_rows(words, tools);
  back_.set_columns(words, tools);
}

void VocabularyLoss::run(Mat<const float> hidden, std::span<const LossDepth> depths,
                         Targets targets, std::span<LossSums> sums, const Tools& tools) {
  check(depths.size() == sums.size(), "a sum for each depth");
  const int n = n_words();
  const int64_t pitch = pitch_of(n);
  soft_.resize(static_cast<size_t>(kChunk) * pitch);
  logits_.resize(static_cast<size_t>(kChunk) * pitch);
  rows_.resize(kChunk);
  for (const LossDepth& depth : depths)
    std::fill(depth.d_y.data,
              depth.d_y.data + static_cast<int64_t>(depth.d_y.rows) * depth.d_y.cols, 0.0f);

  for (int begin = 0; begin < hidden.rows; begin += kChunk) {
    const int end = std::min(begin + kChunk, hidden.rows);
    if (targets != Targets::Hard) {
      left_.set_rows(hidden.middle(begin, end - begin), tools);
      multiply_apart(left_, forward_, soft_.data(), pitch, tools);
      tools.pool->split(end - begin, 1, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row)
          tools.table->softmax(soft_.data() + row * pitch, n);
      });
    }
    for (size_t i = 0; i < depths.size(); ++i) {
      const LossDepth& depth = depths[i];
      const int first = std::max(begin - depth.depth, 0);
      const int last = end - depth.depth;
      if (first >= last) continue;
      run_depth(depth, first, last, soft_.data(), begin - depth.depth, targets, sums[i], tools);
    }
  }
}

void VocabularyLoss::chances(std::span<const LossDepth> depths,
                             std::span<std::vector<float>> chances, const Tools& tools) {
  const int n = n_words();
  const int64_t pitch = pitch_of(n);
  logits_.resize(static_cast<size_t>(kChunk) * pitch);
  for (size_t d = 0; d < depths.size(); ++d) {
    const LossDepth& depth = depths[d];
    chances[d].assign(depth.y.rows, 0.0f);
    for (int begin = 0; begin < depth.y.rows; begin += kChunk) {
      const int rows = std::min(kChunk, depth.y.rows - begin);
      left_.set_rows(depth.y.middle(begin, rows), tools);
      multiply_apart(left_, forward_, logits_.data(), pitch, tools);
      d_left_.make_rows(rows, n, tools);
      tools.pool->split(rows, 1, [&](int64_t first, int64_t last) {
        for (auto i = static_cast<int>(first); i < last; ++i) {
          const int row = begin + i;
          if (depth.weights[row] == 0 || depth.hard[row] < 0) continue;
          const LossRow got = tools.table->loss_row({.logits = logits_.data() + i * pitch,
                                                     .soft = nullptr,
                                                     .hard = depth.hard[row],
                                                     .soft_weight = 0,
                                                     .hard_weight = 1,
                                                     .scale = 0,
                                                     .n = n,
                                                     .d_units = d_left_.row(i)});
          chances[d][row] = std::exp(-got.loss);
        }
      });
    }
  }
}

void weigh_by_length(std::span<const std::vector<float>> chances, double alpha,
                     std::span<std::vector<float>> weights) {
  const size_t depths = weights.size();
  double before = 0;
  double after = 0;
  std::vector<double> products(depths);
  for (size_t row = 0; depths > 0 && row < weights[0].size(); ++row) {
    double product = 1;
    for (size_t d = 0; d < depths; ++d) {
      before += weights[d][row];
      if (weights[d][row] > 0) product *= (1 - alpha) * chances[d][row] + alpha;
      products[d] = weights[d][row] > 0 ? product : 0;
    }
    double sum = 0;
    for (size_t d = depths; d-- > 0;) {
      sum += products[d];
      weights[d][row] *= static_cast<float>(sum);
      after += weights[d][row];
    }
  }
  if (!(after > 0)) return;
  for (auto& each : weights)
    for (float& weight : each) weight *= static_cast<float>(before / after);
}

void VocabularyLoss::run_depth(const LossDepth& depth, int first, int last, const float* soft,
                               int soft_first, Targets targets, LossSums& sum, const Tools& tools) {
  const int n = n_words();
  const int64_t pitch = pitch_of(n);
  const int rows = last - first;
  if (std::all_of(depth.weights.begin() + first, depth.weights.begin() + last,
                  [](float w) { return w == 0; }))
    return;
  left_.set_rows(depth.y.middle(first, rows), tools);
  multiply_apart(left_, forward_, logits_.data(), pitch, tools);
  d_left_.make_rows(rows, n, tools);
  tools.pool->split(rows, 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<int>(begin); i < end; ++i) {
      const int row = first + i;
      uint32_t* d_units = d_left_.row(i);
      const int hard = depth.hard[row];
      // Half and half, or all on the soft one where there is no hard one.
      const float hard_weight = targets == Targets::Hard                 ? 1.0f
                                : targets == Targets::Mixed && hard >= 0 ? 0.5f
                                                                         : 0.0f;
      if (depth.weights[row] == 0) {
        std::fill_n(d_units, d_left_.steps(), 0u);
        continue;
      }
      rows_[i] = tools.table->loss_row(
          {.logits = logits_.data() + i * pitch,
           .soft = targets == Targets::Hard ? nullptr : soft + (row - soft_first) * pitch,
           .hard = hard,
           .soft_weight = 1.0f - hard_weight,
           .hard_weight = hard_weight,
           .scale = depth.weights[row],
           .n = n,
           .d_units = d_units});
    }
  });
  for (int i = 0; i < rows; ++i) {
    const float weight = depth.weights[first + i];
    if (weight == 0) continue;
    sum.loss += double(weight) * rows_[i].loss;
    sum.targets += 1;
    sum.hits += rows_[i].best == depth.hard[first + i] ? 1 : 0;
  }
  multiply(d_left_, back_, depth.d_y.middle(first, rows), false, tools);
}

}  // namespace paceline::train
