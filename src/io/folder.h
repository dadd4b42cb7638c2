// A Hugging Face folder: safetensors weights and the text files beside them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/weight_file.h"

namespace paceline {

struct Folder {
  std::vector<WeightFile> files;                // sorted by name
  std::vector<Tensor> tensors;                  // file by file, within one by offset
  std::map<std::string, std::string> metadata;  // of the files, as Checkpoint::file_metadata()
  std::string config_json;
  std::string generation_config_json;
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string chat_template_jinja;
  std::vector<std::string> warnings;
};

// Which weights are meant:
//   model.safetensors.index.json is there: what its weight_map names, each tensor from the shard
//     named for it. Every missing shard and tensor is told. Tensors that a shard holds without
//     being named for it, and .safetensors files that the index does not name, are left out with a
//     warning.
//   else model.safetensors, others beside it left out with a warning; else the only .safetensors
//     file; else NAME-00001-of-0000N.safetensors and so on, if these are all there and nothing else
//     is, and no tensor lies in two of them. Several others are refused, since nothing says which
//     of them is meant.
//
// JSON files with brackets more than 256 deep are refused, for all who will read them.
//
// A folder whose patch is not whole (io/folder_edit.h) is refused, but to the patcher itself.
//
// Links are followed for reading. Only the shards that an index names must, links resolved, lie in
// the folder; except in a Hugging Face cache, where snapshots/<revision>/ links into blobs/ beside
// snapshots/.
enum class Unfinished { Refused, Allowed };
Result<Folder> open_folder(const std::filesystem::path& path,
                           Unfinished unfinished = Unfinished::Refused);

// The file that holds a tensor of the folder.
const WeightFile& file_of(const Folder& folder, const Tensor& tensor);

// The name of the index, and of weights that are one file.
inline constexpr const char* kIndexName = "model.safetensors.index.json";
inline constexpr const char* kSingleName = "model.safetensors";

}  // namespace paceline
