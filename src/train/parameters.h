// The weights that training changes: one run of float32 values, and which part of it is what.
// Gradients, the optimiser's moments and averages are runs of the same layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::train {

// What --freeze names.
enum class Part { Merge, Norms, Layer };

struct Parameter {
  std::string name;  // "mtp.fc.weight"
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t count = 0;
  Part part = Part::Layer;
  bool is_matrix = false;  // weight decay is for matrices
  bool frozen = false;
};

class Layout {
 public:
  // In this order, one behind another.
  void add(std::string name, std::vector<int64_t> shape);
  void freeze(Part part);

  std::span<const Parameter> parameters() const { return parameters_; }
  int64_t size() const { return size_; }
  const Parameter* find(std::string_view name) const;

 private:
  std::vector<Parameter> parameters_;
  int64_t size_ = 0;
};

// Where the tensors of one module stand in a run. T is float or const float; null where the family
// has no such tensor.
template <class T>
struct ModuleValues {
  T *fc, *embedding_norm, *hidden_norm, *norm;
  T *attn_norm, *ffn_norm, *q, *k, *v, *out, *gate, *up, *down;
  T *q_bias, *k_bias, *v_bias, *out_bias, *gate_bias, *up_bias, *down_bias;
  T *q_norm, *k_norm;
};
template <class T>
ModuleValues<T> module_values(const Layout& layout, int module, T* values);

}  // namespace paceline::train
