// What a dense decoder computes, read from config.json or GGUF metadata: the numbers, and the
// switches by which families differ. A checkpoint's own spellings are translated here, once
// (specifications: dense decoders, section 2; gemma3, section 1).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "kernels/rope.h"
#include "models/config_reader.h"

namespace paceline {

// Rotary positions of one kind of layer.
struct RopeConfig {
  double theta = 10000;
  std::optional<double> linear;  // frequencies are divided by it
  std::optional<Llama3Scaling> llama3;
};

enum class Activation { Silu, Gelu };  // of the gate; Gelu in the form with tanh

// Biases of a group of projections.
enum class Bias {
  None,
  IfThere,  // the file decides, as in GGUF, whose metadata do not say
  Required
};

struct DenseConfig {
  std::string family;

  int n_layers = 0;
  int dim = 0;
  int hidden_dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int context_length = 0;
  float norm_eps = 0;
  bool tied = false;  // the output matrix is the embedding, unless the file holds one

  Bias qkv_bias = Bias::None;
  Bias out_bias = Bias::None;
  Bias ffn_bias = Bias::None;
  Activation activation = Activation::Silu;
  bool qk_norms = false;          // of every head of q and k, before the rotation
  bool post_norms = false;        // of what attention and feed-forward give, before it is added
  bool norms_lack_one = false;    // the file holds w of norms that multiply by 1 + w
  bool qk_rows_in_pairs = false;  // the file holds rows of q and k in the order of rotated pairs
  double query_scale = 0;         // scores are divided by its root; 0: head_dim
  double logit_cap = 0;           // logits become cap * tanh(logits / cap); 0: they stay
  // Embeddings are multiplied by the root of dim, rounded to their own type where it is a short one
  // and the file is a safetensors folder: as models in those types have been trained.
  bool scaled_embedding = false;

  int window = 0;            // positions that a sliding layer sees, its own among them; 0: no such
  std::vector<bool> slides;  // a layer; empty: none
  RopeConfig rope;
  std::optional<RopeConfig> sliding_rope;  // of sliding layers, where theirs is another

  bool layer_slides(int layer) const { return window > 0 && slides[layer]; }
};

// What a family file tells of itself: how its settings are read, from either container.
struct DenseFamily {
  const char* name;           // as reports say it
  const char* nested_config;  // object of config.json with the settings, or null
  void (*read)(ConfigReader& in, DenseConfig& config);
};

// "llama" and the like: model_type of config.json, general.architecture of a GGUF file.
Result<std::string> family_of(const Checkpoint& checkpoint);

// Every number is checked against what the others allow; a fault names the file and the key.
Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint, const DenseFamily& family);
// The same for whichever family the checkpoint names (models/registry.cpp); Unsupported, with those
// that are known, for another.
Result<DenseConfig> read_config(const Checkpoint& checkpoint);

// --- for family files ----------------------------------------------------------------------------

// Sizes, eps and whether the output matrix is tied (config.json: where nothing is said, `tied`).
void read_sizes(ConfigReader& in, DenseConfig& config, bool tied = false);
// One rotation for all layers.
void read_rope(ConfigReader& in, DenseConfig& config);
// The scaling that an object names, if any: {"rope_type": "linear", "factor": 8}.
void read_rope_scaling(ConfigReader& in, const ConfigReader::Json& object, const char* name,
                       RopeConfig& rope);
// `layer_types` of config.json: which layers slide; none where the key is missing.
std::optional<std::vector<bool>> read_layer_types(ConfigReader& in, int n_layers);
// use_sliding_window, sliding_window, layer_types and max_window_layers, as Qwen has them.
void read_switched_window(ConfigReader& in, DenseConfig& config);
// Required, if the flag of config.json is true; in GGUF files the tensors decide.
Bias bias_by_flag(ConfigReader& in, const char* flag);

}  // namespace paceline
