// Whether a head file fits a checkpoint, from the bytes of the one and the headers of the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "io/safetensors_reader.h"
#include "io/weight_file.h"
#include "models/head_file.h"

namespace paceline {

// The warning that a head was trained for another trunk than the one with this SHA-256; empty where
// it was not, or does not say. name: what the head goes by.
std::string another_trunk(const HeadConfig& head, const std::string& trunk_sha256,
                          const std::string& name);

// Model::head_shapes() without loading the model. Unsupported for families without heads.
Result<std::vector<HeadShape>> head_shapes(const Checkpoint& trunk, int modules);

struct CheckedHead {
  WeightFile file;
  SafetensorsContents contents;  // views into the file
  HeadConfig config;
  std::string sha256;
  std::vector<std::string> warnings;
};

// BadFormat with everything that is wrong: tensors that are missing, that belong to no head of this
// trunk, of another shape or type than bf16, all zeros (biases may be), with values that are not
// finite; no tensor at all; a family or a draft vocabulary that is not the trunk's. A head that was
// trained for another trunk is worth a warning: it drafts less, and changes no text.
Result<CheckedHead> check_head_file(const std::filesystem::path& head, const Checkpoint& trunk);

}  // namespace paceline
