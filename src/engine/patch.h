// Puts a draft head into a checkpoint and takes it out again, to the byte.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace paceline {

// The file of a patched folder that holds the head.
inline constexpr const char* kHeadShard = "mtp.safetensors";

struct PatchOptions {
  std::filesystem::path model;
  std::filesystem::path head;
  std::filesystem::path out;        // empty: in place
  std::function<bool()> stop = {};  // looked at between pieces; nothing is changed then
};

struct PatchSummary {
  std::vector<std::string> files_written, files_removed;  // paths
  // Of the trunk, which a patch leaves what it was; empty: not readable.
  std::string sha256_before, sha256_after;
  std::string head_sha256;
  std::vector<std::string> warnings;
};

// A folder gets one more shard, kHeadShard, the bytes of the head file, and an index that names it
// (a new one where there was none); config.json stays as it is. Tensors of a head that the
// checkpoint holds already are moved out: a shard of nothing else goes, others are written anew
// without them; the pristine ones are kept (io/folder_edit.h), so no name stands in two files. All
// other files keep their bytes. A second patch replaces the first head and keeps the pristine
// files. With `out`, a whole new folder is made from the pristine files, and patched.
//
// A GGUF file gets the head as a side file, MODEL.gguf.mtp.safetensors.
//
// The head is checked (models/head_check.h), and room and permissions, before anything changes;
// what was written is read back and compared.
Result<PatchSummary> patch_model(const PatchOptions& options);

// The pristine folder again, or a GGUF file without side file. NotFound where nothing was patched.
Result<PatchSummary> unpatch_model(const std::filesystem::path& model);

}  // namespace paceline
