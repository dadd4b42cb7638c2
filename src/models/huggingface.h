// A dense GGUF checkpoint under the names and settings of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "models/dense_config.h"
#include "models/weights.h"

namespace paceline {

// One tensor of the folder and where its values come from.
struct FolderTensor {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  const Tensor* source = nullptr;
  RowOrder order = RowOrder::AsStored;  // of rows; of a vector's values
  int head_dim = 0;
  bool less_one = false;  // the folder holds w where the source holds 1 + w
};

struct FolderContents {
  std::vector<FolderTensor> tensors;  // embedding, layers, final norm, output
  bool tied = false;                  // no output matrix of its own, or the embedding once more
  std::vector<std::string> left_out;  // tensors of the source that no part of the model reads
};

// Every tensor that the config wants, in the order of a Hugging Face checkpoint. BadFormat for
// missing and misshapen ones, each named; Unsupported for tensors of a layer that are no part of
// the family, and for biases in some layers only.
Result<FolderContents> folder_contents(const Checkpoint& gguf, const DenseConfig& config);

// Ids of special tokens, for config.json and generation_config.json.
struct SpecialIds {
  std::optional<int64_t> bos, pad;
  std::vector<int64_t> ends;  // the first is the tokenizer's own
};

// config.json, such that this program and transformers compute what the GGUF file asks for.
// Unsupported where config.json has no words for it: divisors of the rotation that are not those of
// a Llama 3.
Result<std::string> folder_config(const Checkpoint& gguf, const DenseConfig& config,
                                  const FolderContents& contents, const SpecialIds& ids);
std::string folder_generation_config(const SpecialIds& ids);

}  // namespace paceline
