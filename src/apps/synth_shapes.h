// The shapes of released models, for checkpoints with random weights, and a tiny one for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline::apps {

struct SynthShape {
  std::string_view family;  // "llama", "mistral", "qwen2", "qwen3", "gemma3"
  std::string_view size;    // "135m"
  int dim = 0;
  int hidden_dim = 0;
  int n_layers = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  bool tied = false;  // the embedding is the output matrix too
  int context_length = 0;
  double rope_theta = 0;
  double rope_factor = 0;  // of rope scaling "llama3"; 0: no scaling
  double norm_eps = 0;
  int window = 0;            // of sliding layers; 0: there are none
  int full_every = 0;        // every so many layers one sees everything; 0: none does
  double sliding_theta = 0;  // rope_theta of sliding layers, where it is another

  // general.architecture of a GGUF file.
  std::string_view architecture() const { return family == "mistral" ? "llama" : family; }
};

std::span<const SynthShape> synth_shapes();
// BadUsage with the names there are.
Result<SynthShape> find_synth_shape(std::string_view family, std::string_view size);

// How the values of a tensor are drawn.
enum class Draw {
  Matrix,     // uniform, variance 1 / n_in
  Embedding,  // uniform, standard deviation 0.02
  Norm,       // 1 and up to a tenth more or less
  NormLess1,  // the same less 1, as gemma's safetensors have it; in GGUF files it is as above
  Bias,       // up to a tenth above or below 0
};

// One tensor under the names of both formats; shape outermost first.
struct SynthTensor {
  std::string name;  // safetensors
  std::string gguf_name;
  std::vector<int64_t> shape;
  Draw draw = Draw::Matrix;
  // q and k of llama: rows a head, which GGUF stores in another order; else 0.
  int rows_per_head = 0;

  int64_t elements() const;
  int64_t row_length() const { return shape.back(); }
};

std::vector<SynthTensor> synth_tensors(const SynthShape& shape);

// The row of the tensor in the order of safetensors that stands at `row` in a GGUF file.
int64_t source_row(const SynthTensor& tensor, int64_t row);

// Row `row` (order of safetensors) of the tensor, as safetensors hold it. It depends on seed, name
// and row alone, so rows may be drawn in any order and by any thread.
void draw_row(const SynthTensor& tensor, uint64_t seed, int64_t row, std::span<float> values);

// Divisors of the rotation frequencies for rope scaling "llama3", head_dim / 2 of them.
std::vector<float> rope_divisors(const SynthShape& shape);

}  // namespace paceline::apps
