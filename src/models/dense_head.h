// The draft head of dense decoders: merge projection, one layer as the trunk's, final norm.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "models/dense_layer.h"
#include "models/draft_head.h"

namespace paceline {

// See Model::head_shapes and Model::make_head. The layer's attention is full, in families with
// sliding windows as well, with the rotation of their full layers.
std::vector<HeadShape> dense_head_shapes(const DenseTrunk& trunk, int modules);
// The same from the config of the trunk's layers, whose biases are all settled.
std::vector<HeadShape> dense_head_shapes(const DenseConfig& layer, int modules);
Result<std::unique_ptr<DraftHead>> make_dense_head(const DenseTrunk& trunk,
                                                   const HeadTensors& head);

}  // namespace paceline
