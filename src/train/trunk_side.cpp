#include "train/trunk_side.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "fmt/format.h"
#include "kernels/packed.h"
#include "kernels/rows.h"
#include "train/random.h"

namespace paceline::train {
namespace {

// What about the layer training does not know, or null.
const char* unknown_part(const DenseTrunk& trunk) {
  const DenseConfig& c = trunk.config;
  if (c.activation != Activation::Silu) return "a feed-forward with GELU";
  if (c.post_norms) return "norms behind attention and feed-forward";
  if (c.logit_cap > 0) return "capped logits";
  if (c.query_scale > 0) return "scores of another scale";
  return nullptr;
}

constexpr const char* kLayer = "layers.0.";

std::vector<float> matrix_values(const PackedMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.n_out) * matrix.n_in);
  for (int row = 0; row < matrix.n_out; ++row)
    unpack_row(matrix, row,
               std::span(values).subspan(static_cast<size_t>(row) * matrix.n_in, matrix.n_in));
  return values;
}

// The tensor of the trunk's last layer with this name, or none.
std::vector<float> layer_values(const DenseTrunk& trunk, std::string_view name) {
  const DenseLayer& last = trunk.weights.layers.back();
  for (const LayerTensor& tensor : layer_tensors(trunk.config)) {
    if (name != tensor.safetensors) continue;
    return tensor.kind == LayerTensor::Kind::Matrix ? matrix_values(last.*tensor.matrix)
                                                    : last.*tensor.vector;
  }
  return {};
}

}  // namespace

Result<TrunkSide> TrunkSide::of(const Model& model) {
  const TrunkSide side(model);
  const char* unknown =
      side.trunk_ == nullptr ? "a trunk of its own kind" : unknown_part(*side.trunk_);
  if (unknown != nullptr)
    return Error{ErrorCode::Unsupported,
                 fmt::format("heads are trained for pre-norm decoders with SwiGLU (llama, mistral, "
                             "qwen2, qwen3); family {} has {}",
                             model.info().family, unknown)};
  return side;
}

NetShape TrunkSide::net_shape(const HeadConfig& head, int depths, Mask mask, int max_rows) const {
  const DenseConfig& c = trunk_->config;
  return {.dim = c.dim,
          .hidden_dim = c.hidden_dim,
          .attention = {c.n_heads, c.n_kv_heads, c.head_dim},
          .norm_eps = c.norm_eps,
          .frequencies = trunk_->frequencies.front(),
          .modules = head.modules,
          .depths = depths,
          .recycles_normed = head.tap == Tap::After,
          .rounds_hidden = head.tap_type == TapType::BF16,
          .mask = mask,
          .max_rows = max_rows};
}

Layout TrunkSide::layout(int modules) const {
  Layout layout;
  for (const HeadShape& tensor : model_->head_shapes(modules))
    layout.add(tensor.name, tensor.shape);
  return layout;
}

HeadTensors TrunkSide::new_head(const HeadConfig& config, uint64_t seed) const {
  constexpr float kMergeDeviation = 0.02f;
  Random random(seed);
  HeadTensors head;
  head.config = config;
  for (const HeadShape& wanted : model_->head_shapes(config.modules)) {
    HeadTensor tensor;
    tensor.shape = wanted.shape;
    int64_t count = 1;
    for (const int64_t n : wanted.shape) count *= n;
    const size_t layer = wanted.name.find(kLayer);
    if (layer != std::string::npos) {
      tensor.values = layer_values(*trunk_, wanted.name.substr(layer + std::string(kLayer).size()));
    } else if (wanted.shape.size() == 2) {
      tensor.values.resize(count);
      for (float& x : tensor.values) x = kMergeDeviation * random.normal();
    } else {
      tensor.values.assign(count, 1.0f);
    }
    check(std::ssize(tensor.values) == count, "a head's layer has the tensors of the trunk's");
    head.tensors[wanted.name] = std::move(tensor);
  }
  return head;
}

std::vector<float> TrunkSide::output_rows(std::span<const TokenId> words) const {
  const PackedMatrix& output = trunk_->weights.output;
  if (words.empty()) return matrix_values(output);
  std::vector<float> rows(words.size() * output.n_in);
  for (size_t i = 0; i < words.size(); ++i)
    unpack_row(output, words[i], std::span(rows).subspan(i * output.n_in, output.n_in));
  return rows;
}

void TrunkSide::final_norm(Mat<float> rows) const {
  rms_norm(Mat<const float>(rows), trunk_->weights.final_norm.data(), trunk_->config.norm_eps, rows,
           trunk_->kernels);
}

std::vector<float> values_of(const HeadTensors& head, const Layout& layout) {
  std::vector<float> values(layout.size());
  for (const Parameter& p : layout.parameters()) {
    const auto found = head.tensors.find(p.name);
    check(found != head.tensors.end() && std::ssize(found->second.values) == p.count,
          "a head that fits the trunk has every tensor of the layout");
    std::ranges::copy(found->second.values, values.begin() + p.offset);
  }
  return values;
}

HeadTensors head_of(const HeadConfig& config, const Layout& layout, std::span<const float> values) {
  HeadTensors head;
  head.config = config;
  for (const Parameter& p : layout.parameters()) {
    const auto part = values.subspan(p.offset, p.count);
    head.tensors[p.name] = {p.shape, {part.begin(), part.end()}};
  }
  return head;
}

}  // namespace paceline::train
