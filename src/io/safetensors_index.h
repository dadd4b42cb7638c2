// Reads model.safetensors.index.json: which tensor lies in which shard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline {

struct IndexedTensor {
  std::string tensor;
  std::string file;  // relative to the folder, '/' between its parts
};

// The weight_map, sorted by tensor name; all else in the file is skipped. Refused: what is no JSON,
// no weight_map or two, an empty one, a tensor named twice, a file name that could leave the folder
// (see leaves_folder). Time and memory are linear in the text. `name` is how errors call the file.
Result<std::vector<IndexedTensor>> read_safetensors_index(std::string_view text,
                                                          const std::string& name);

// Whether a file name from an index could mean something outside of its folder, or two names the
// same file: empty, absolute, a drive letter, a backslash, a zero byte, an empty part, `.` or `..`.
bool leaves_folder(std::string_view file);

}  // namespace paceline
