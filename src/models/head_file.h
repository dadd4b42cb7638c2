// A draft head on disk: its tensors under their names and what its file says about them. The values
// are those of training: float32 in memory, bf16 in files.
//
// Module 0 has the names of the `mtp.*` convention, module k >= 1 `mtp.modules.k.` in place of
// `mtp.`; matrices are [n_out, n_in]:
//   mtp.fc.weight                        [dim, 2 dim], columns as kMergeOrder says
//   mtp.pre_fc_norm_embedding.weight     [dim]     norms hold the whole factor, in every family
//   mtp.pre_fc_norm_hidden.weight        [dim]
//   mtp.norm.weight                      [dim]
//   mtp.layers.0.<a layer's own names>   as in the family's safetensors checkpoints
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tap.h"
#include "base/types.h"
#include "io/checkpoint.h"

namespace paceline {

inline constexpr int kMostHeadModules = 8;

struct HeadConfig {
  Tap tap = Tap::After;
  TapType tap_type = TapType::BF16;
  int modules = 1;  // depth d uses module min(d, modules)
  int depths = 1;   // that it was trained for
  // Full ids that the head scores, ascending; empty: all.
  std::vector<TokenId> draft_vocabulary;
  std::string family;        // of the trunk: "llama"
  std::string trunk_sha256;  // of the checkpoint that it was trained for, or empty
  std::string numerics;
  std::string data_sha256;
  std::string trainer;
};

struct HeadTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct HeadTensors {
  HeadConfig config;
  std::map<std::string, HeadTensor> tensors;
};

// A tensor that a head must have.
struct HeadShape {
  std::string name;
  std::vector<int64_t> shape;
};

// "mtp." or "mtp.modules.3."
std::string head_prefix(int module);

// A file of its own. NotFound, or BadFormat with every fault of its metadata or the tensor that
// holds a value that is not finite.
Result<HeadTensors> read_head(const std::filesystem::path& file);
// The mtp.* tensors of a checkpoint, with what its files say about them; NotFound where it has
// none. Without a word about them the tap is after the norm and all ids are scored.
Result<HeadTensors> read_head(const Checkpoint& checkpoint);

// What a checkpoint's files say about the mtp.* tensors in it; NotFound where it has none.
Result<HeadConfig> head_config_of(const Checkpoint& checkpoint);

// What a file says about itself, from its header alone. NotFound where it does not say that it is a
// head.
Result<HeadConfig> read_head_config(const std::filesystem::path& file);

// The tensors that a file has, from its header alone: whether they fit is known before one is read.
Result<std::vector<HeadShape>> read_head_shapes(const std::filesystem::path& file);

// As a safetensors file of bf16 tensors with the metadata `paceline.*`; whole or not at all.
// BadFormat for a value that is not finite.
Result<void> write_head(const std::filesystem::path& file, const HeadTensors& head);

// The metadata that write_head() writes, for whoever puts the tensors into another file.
std::map<std::string, std::string> head_metadata(const HeadConfig& config);

// BadFormat with every tensor that is missing, has another shape (with both) or is not used, where
// a trunk wants `wanted`.
Result<void> check_head_shapes(std::span<const HeadShape> found, std::span<const HeadShape> wanted);

// What is wrong with the head for a trunk that wants `shapes` and has so many words: every tensor
// that is missing, has another shape (with both) or is not used, values that are not finite, an id
// out of range or out of order. Success says that each wanted tensor is there once and each tensor
// is wanted.
Result<void> check_head(const HeadTensors& head, std::span<const HeadShape> shapes, int vocab_size);

}  // namespace paceline
