// What training takes from the trunk: sizes, the weights that a new head begins with, and the rows
// of embedding and output matrix, which do not learn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "models/dense_layer.h"
#include "models/head_file.h"
#include "models/model.h"
#include "train/net.h"
#include "train/parameters.h"

namespace paceline::train {

class TrunkSide {
 public:
  // Unsupported, with the reason, for trunks whose layer training does not know: anything but
  // pre-norm decoders with SwiGLU. The model must outlive it.
  static Result<TrunkSide> of(const Model& model);

  const Model& model() const { return *model_; }
  int dim() const { return trunk_->config.dim; }
  int vocab_size() const { return trunk_->config.vocab_size; }
  const Kernels& kernels() const { return trunk_->kernels; }

  NetShape net_shape(const HeadConfig& head, int depths, Mask mask, int max_rows) const;
  Layout layout(int modules) const;

  // A new head: merge random, of standard deviation 0.02; norms one; layer copied from the trunk's
  // last. (A merge that begins as identity predicts the token already known.)
  HeadTensors new_head(const HeadConfig& config, uint64_t seed) const;

  void embed(TokenId token, std::span<float> row) const { trunk_->embed(token, row); }
  // Rows of the output matrix for these words, one behind another; no words: all.
  std::vector<float> output_rows(std::span<const TokenId> words) const;
  // In place: the final norm, which hiddens with the tap before it still lack.
  void final_norm(Mat<float> rows) const;

 private:
  explicit TrunkSide(const Model& model) : model_(&model), trunk_(model.dense_trunk()) {}

  const Model* model_;
  const DenseTrunk* trunk_;
};

// Between a head's named tensors and a run of the layout.
std::vector<float> values_of(const HeadTensors& head, const Layout& layout);
HeadTensors head_of(const HeadConfig& config, const Layout& layout, std::span<const float> values);

}  // namespace paceline::train
