// Opens a GGUF model: one file, or all parts of a split one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/gguf_metadata.h"
#include "io/weight_file.h"

namespace paceline {

struct GgufFile {
  std::vector<WeightFile> files;  // one, or the parts in order
  std::vector<Tensor> tensors;    // part by part, in file order
  GgufMetadata metadata;          // of the first part, which alone carries the model's keys
  std::vector<std::string> warnings;
};

// `path` may be any part of a split file (split.count above 1); the others are
// NAME-0000i-of-0000N.gguf beside it, named after `path` alone, never by what a file says. Refused:
// a part under a name that does not say its place, missing parts, each told, parts of another set,
// a tensor in two parts, a number of tensors other than split.tensors.count.
Result<GgufFile> open_gguf(const std::filesystem::path& path);

}  // namespace paceline
