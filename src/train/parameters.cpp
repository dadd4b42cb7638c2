#include "train/parameters.h"

#include <utility>

namespace paceline::train {
namespace {

Part part_of(std::string_view name, size_t dimensions) {
  if (name.ends_with(".fc.weight")) return Part::Merge;
  const bool is_norm = dimensions == 1 && name.find("norm") != std::string_view::npos;
  return is_norm ? Part::Norms : Part::Layer;
}

}  // namespace

void Layout::add(std::string name, std::vector<int64_t> shape) {
  Parameter p;
  p.name = std::move(name);
  p.shape = std::move(shape);
  p.offset = size_;
  p.count = 1;
  for (const int64_t n : p.shape) p.count *= n;
  p.part = part_of(p.name, p.shape.size());
  p.is_matrix = p.shape.size() == 2;
  size_ += p.count;
  parameters_.push_back(std::move(p));
}

void Layout::freeze(Part part) {
  for (Parameter& p : parameters_)
    if (p.part == part) p.frozen = true;
}

const Parameter* Layout::find(std::string_view name) const {
  for (const Parameter& p : parameters_)
    if (p.name == name) return &p;
  return nullptr;
}

template <class T>
ModuleValues<T> module_values(const Layout& layout, int module, T* values) {
  const std::string prefix = module == 0 ? "mtp." : "mtp.modules." + std::to_string(module) + ".";
  const auto at = [&](const std::string& name) -> T* {
    const Parameter* p = layout.find(prefix + name);
    return p == nullptr ? nullptr : values + p->offset;
  };
  const std::string layer = "layers.0.";
  const std::string attention = layer + "self_attn.";
  const std::string mlp = layer + "mlp.";
  return {.fc = at("fc.weight"),
          .embedding_norm = at("pre_fc_norm_embedding.weight"),
          .hidden_norm = at("pre_fc_norm_hidden.weight"),
          .norm = at("norm.weight"),
          .attn_norm = at(layer + "input_layernorm.weight"),
          .ffn_norm = at(layer + "post_attention_layernorm.weight"),
          .q = at(attention + "q_proj.weight"),
          .k = at(attention + "k_proj.weight"),
          .v = at(attention + "v_proj.weight"),
          .out = at(attention + "o_proj.weight"),
          .gate = at(mlp + "gate_proj.weight"),
          .up = at(mlp + "up_proj.weight"),
          .down = at(mlp + "down_proj.weight"),
          .q_bias = at(attention + "q_proj.bias"),
          .k_bias = at(attention + "k_proj.bias"),
          .v_bias = at(attention + "v_proj.bias"),
          .out_bias = at(attention + "o_proj.bias"),
          .gate_bias = at(mlp + "gate_proj.bias"),
          .up_bias = at(mlp + "up_proj.bias"),
          .down_bias = at(mlp + "down_proj.bias"),
          .q_norm = at(attention + "q_norm.weight"),
          .k_norm = at(attention + "k_norm.weight")};
}

template ModuleValues<float> module_values(const Layout&, int, float*);
template ModuleValues<const float> module_values(const Layout&, int, const float*);

}  // namespace paceline::train
