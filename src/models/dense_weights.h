// The weights of a dense decoder under their names in both containers (specifications: dense
// decoders, section 3; gemma3, sections 3 and 4).
#pragma once

#include <memory>
#include <vector>

#include "kernels/packed.h"
#include "models/dense_config.h"
#include "models/weights.h"

namespace paceline {

struct DenseLayer {
  std::vector<float> attn_norm, ffn_norm;
  PackedMatrix q, k, v, out;
  PackedMatrix gate, up, down;
  // Empty where the family or the checkpoint has none.
  std::vector<float> q_bias, k_bias, v_bias, out_bias, gate_bias, up_bias, down_bias;
  std::vector<float> q_norm, k_norm;
  std::vector<float> attn_post_norm, ffn_post_norm;
};

struct DenseWeights {
  std::shared_ptr<const HugeBuffer> memory;  // of all matrices; copies share it
  PackedMatrix embedding;
  PackedMatrix output;  // the embedding where the two are tied
  std::vector<float> final_norm;
  std::vector<float> rope_divisors;  // a GGUF file's own form of the llama3 scaling, or none
  std::vector<DenseLayer> layers;
};

// A tensor of a layer: its names, in both containers behind the layer's own, its shape, and the
// member that it fills.
struct LayerTensor {
  enum class Kind { Matrix, Norm, Bias };

  Kind kind;
  const char* gguf;
  const char* safetensors;
  int n_out;
  int n_in;                            // 1 for a vector
  bool rotated = false;                // rows that belong to rotated pairs
  Bias presence = Bias::Required;      // of a bias
  PackedMatrix DenseLayer::*matrix{};  // one of the two
  std::vector<float> DenseLayer::*vector{};
};

// Every tensor that a layer may have by its config, biases that the file decides about among them.
std::vector<LayerTensor> layer_tensors(const DenseConfig& config);

// Rows of the embedding: in a GGUF file they decide how large the vocabulary is.
Result<int> vocabulary_rows(const Checkpoint& checkpoint);

// Asks for everything that the config wants. Tensors of a layer that are left over are refused:
// without them the model would run and be wrong. `weights` must stay where it is until load().
void ask_for_weights(const DenseConfig& config, const Checkpoint& checkpoint, WeightLoader& loader,
                     DenseWeights& weights);

}  // namespace paceline
