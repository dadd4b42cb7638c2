// The numbers of a dense decoder, read from config.json or GGUF metadata. A checkpoint's own
// spellings are translated here, once (specification: dense decoders, section 2).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "kernels/rope.h"

namespace paceline {

struct DenseConfig {
  int n_layers = 0;
  int dim = 0;
  int hidden_dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int context_length = 0;
  float norm_eps = 0;
  double rope_theta = 10000;
  std::optional<double> rope_linear;  // frequencies are divided by it
  std::optional<Llama3Scaling> rope_llama3;
  bool tied = false;  // the output matrix is the embedding, unless the file holds one
};

// "llama" and the like: model_type of config.json, general.architecture of a GGUF file.
Result<std::string> family_of(const Checkpoint& checkpoint);

// Every number is checked against what the others allow; a fault names the file and the key.
Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint, const std::string& family);

}  // namespace paceline
