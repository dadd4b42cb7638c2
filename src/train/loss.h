// The loss over the draft vocabulary, fused with the output matrix: logits stand in memory for a
// few rows at a time and never for all.
//
//   soft   -sum over words of t ln q     t: the trunk's own probabilities of the token to be
//                                        guessed, from its hidden one row before that token
//   hard   -ln q[token that followed]    no term where the vocabulary lacks that token
//   mixed  half of each
//
// with q = softmax(W y) and t = softmax(W h) over the words of the draft vocabulary. W, the rows of
// the trunk's output matrix, does not learn.
#pragma once

#include <span>
#include <vector>

#include "base/mat.h"
#include "train/product.h"

namespace paceline::train {

enum class Targets { Soft, Hard, Mixed };

// One depth's rows. Row r is to guess what the trunk's hidden of row r + depth predicts.
struct LossDepth {
  int depth = 1;
  Mat<const float> y;              // (rows, dim)
  std::span<const float> weights;  // a row: its part of the loss; 0: no target
  std::span<const int> hard;       // a row: index of the token that followed, or -1
  Mat<float> d_y;                  // (rows, dim), overwritten
};

struct LossSums {
  double loss = 0;      // times the rows' weights
  int64_t targets = 0;  // rows with a weight
  int64_t hits = 0;     // of these: the best word is the token that followed
};

class VocabularyLoss {
 public:
  // words (n_words, dim): what the trunk's output matrix has for the draft vocabulary.
  VocabularyLoss(Mat<const float> words, const Tools& tools);

  int n_words() const { return forward_.cols(); }
  // What each row with a weight gives the token that followed, 0 where that is not among the words:
  // chances[i][row] for depths[i].
  void chances(std::span<const LossDepth> depths, std::span<std::vector<float>> chances,
               const Tools& tools);

  // hidden (rows, dim): the trunk's, behind its final norm. Adds to sums[i] for depths[i].
  void run(Mat<const float> hidden, std::span<const LossDepth> depths, Targets targets,
           std::span<LossSums> sums, const Tools& tools);

 private:
  void run_depth(const LossDepth& depth, int first, int last, const float* soft, int soft_first,
                 Targets targets, LossSums& sum, const Tools& tools);

  Right forward_;  // logits = y W^T
  Right back_;     // d_y = d_logits W
  Left left_, d_left_;
  std::vector<float> soft_, logits_;
  std::vector<LossRow> rows_;
};

// Weights by what limits the expected length (D-PACE, Wu et al. 2026): with the chance q_d of a
// row's token at depth d, smoothed to s = (1 - alpha) q + alpha, the weight at depth d is
// multiplied by
//   sum over k >= d of s_1 ... s_k
// which is what ln q_d adds to the sum of those products. Depths without weight count for nothing.
// All weights together keep their sum.
void weigh_by_length(std::span<const std::vector<float>> chances, double alpha,
                     std::span<std::vector<float>> weights);

}  // namespace paceline::train
