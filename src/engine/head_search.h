// Where the draft head of a model is found.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "models/head_file.h"

namespace paceline {

struct FoundHead {
  HeadTensors tensors;
  std::filesystem::path file;  // of its own, or the checkpoint
  bool in_checkpoint = false;
  std::string
      sha256;  // of the file; in a checkpoint of its settings and its tensors' names and bytes
};

struct HeadSearch {
  std::optional<FoundHead> found;
  // Of the first head that was there and cannot be read or has other tensors than the model wants,
  // and the file that it is in.
  std::optional<Error> fault;
  std::filesystem::path fault_file;
  std::vector<std::string> places;  // looked at, as the user would write them
};

// The side file of a GGUF model: MODEL.gguf.mtp.safetensors. A link is followed, so that every name
// of a file finds its head, but for the links of a hub's cache, whose blobs are nobody's to touch.
std::filesystem::path head_side_file(const std::filesystem::path& model);

// $XDG_DATA_HOME/paceline/heads, else ~/.local/share/paceline/heads; empty where there is no home.
std::filesystem::path user_heads_folder();

// ./heads, share/paceline/heads beside the program's folder, and the user's.
std::vector<std::filesystem::path> heads_folders();
// The files of a folder with this extension, sorted by name; none where there is no folder.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            std::string_view extension);

// The file that was asked for, if any. Else the first of: mtp.* tensors in the checkpoint; the side
// file of a GGUF model; in ./heads, in ../share/paceline/heads beside the program and in the user's
// folder the first *.safetensors, by name, whose metadata have the checkpoint's SHA-256 as
// `paceline.trunk_sha256`. That digest is computed only where some head lies there.
// Names and shapes are compared with the model's before a tensor is read.
HeadSearch find_head(const Checkpoint& checkpoint, const std::filesystem::path& asked);

}  // namespace paceline
