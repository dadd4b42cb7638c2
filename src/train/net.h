// A draft head as training computes it: all rows of some sequences at every depth, and back.
//
//   depth s, row p:   x = fc [ RMS(embedding of t_{p+s}) ; RMS(hidden) ]
//                     x = one layer of the trunk's family;   y = RMS(x)
//
// hidden is the trunk's h_p at depth 1, then what the depth before gave at the same row (y, or x
// with the tap before the norm), rounded to the tap's type as in serving; the gradient passes the
// rounding unchanged. The token is the text's own where serving has the one it drafted. y scores
// t_{p+s+1}.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mat.h"
#include "train/attention.h"
#include "train/loss.h"
#include "train/parameters.h"
#include "train/product.h"
#include "train/row_ops.h"

namespace paceline::train {

// What rows of depth s > 1 attend to; see attention.h.
enum class Mask {
  Served,  // keys of depth 1, from the trunk's hiddens, and the row's own chain
  Recipe,  // keys of depth s
};

struct NetShape {
  int dim = 0;
  int hidden_dim = 0;
  AttentionShape attention;
  float norm_eps = 0;
  std::vector<double> frequencies;  // radians a position, (head_dim / 2)
  int modules = 1;                  // depth s uses module min(s, modules)
  int depths = 1;
  bool recycles_normed = true;  // tap after: y goes round; before: x
  bool rounds_hidden = true;    // to bf16
  Mask mask = Mask::Served;
  int max_rows = 512;  // of one sequence
};

// Rows of whole sequences, one behind another. Row p of a sequence of n rows stands for hidden h_p
// and its next token t_{p+1}; tokens reach to t_n.
struct NetBatch {
  std::vector<Segment> segments;
  Mat<const float> hidden;        // (rows, dim), the trunk's at the tap
  Mat<const float> final_hidden;  // (rows, dim), the same behind the trunk's final norm
  Mat<const float> embedding;     // (rows + depths - 1, dim): row r of t_{p+1}
  // Of depth s: weights[s - 1][r] is the row's part of the loss, 0 where there is no target.
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<int>> hard;  // index of the token to be guessed, or -1

  int rows() const { return hidden.rows; }
};

class HeadNet {
 public:
  HeadNet(const NetShape& shape, const Layout& layout, const Tools& tools);
  ~HeadNet();

  // Takes the weights for the passes that follow; they must stay where they are.
  void set_weights(std::span<const float> values);

  // How many depths the passes that follow have: 1 to those that the net was made with.
  void use_depths(int depths);
  int depths() const { return active_; }

  void forward(const NetBatch& batch);
  // After forward: what a depth gives. y (rows, dim) as it is scored; state what the next depth
  // reads, before it is rounded.
  Mat<const float> y(int depth) const;
  Mat<const float> state(int depth) const;

  // Loss of all depths; d_y of each is kept for backward.
  // dpace: smoothing of weigh_by_length; below 0: the batch's weights as they are.
  void loss(const NetBatch& batch, Targets targets, VocabularyLoss& vocabulary,
            std::span<LossSums> sums, double dpace = -1);
  // In place of loss(), for tests: the gradient of y.
  Mat<float> d_y(int depth);

  // Adds to `gradient`, which has the layout of the weights.
  void backward(const NetBatch& batch, std::span<float> gradient);

 private:
  struct Module;
  struct Depth;
  struct Back;

  int module_of(int depth) const { return depth < shape_.modules ? depth - 1 : shape_.modules - 1; }
  // The depth whose keys of earlier rows a depth sees.
  int base_of(int depth) const;
  Mat<const float> hidden_in(const NetBatch& batch, int depth) const;
  void reserve(int rows);
  void forward_depth(const NetBatch& batch, int depth);
  void backward_depth(const NetBatch& batch, int depth, std::span<float> gradient);

  NetShape shape_;
  const Layout& layout_;
  Tools tools_;
  Angles angles_;
  std::span<const float> values_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<Depth>> depths_;
  std::unique_ptr<Back> back_;
  std::vector<AttentionRows> attention_rows_;
  AttentionScratch scratch_;
  Left left_;
  Right right_;
  int rows_ = 0;
  int active_;  // depths
};

}  // namespace paceline::train
