// What a patch does to a folder: the new index, and where a head lies already.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/folder.h"
#include "models/head_check.h"

namespace paceline {

// A weight file without the head that it held.
struct RewrittenShard {
  std::string name;
  std::vector<Tensor> kept;  // views into the file as it is
  std::map<std::string, std::string> metadata;

  uint64_t bytes() const;  // of its tensors
};

struct FolderPatch {
  std::string index_text;
  std::vector<RewrittenShard> rewritten;
  std::vector<std::string> removed;  // files of head tensors alone
  std::vector<std::string> warnings;

  std::vector<std::string> names() const;  // of all files that change
  uint64_t bytes_to_write(const CheckedHead& head) const;
};

// BadFormat where the head's shard is taken by tensors of the trunk.
Result<FolderPatch> plan_folder_patch(const std::filesystem::path& path, const Folder& folder,
                                      const CheckedHead& head);

Result<void> write_rewritten(const std::filesystem::path& to, const RewrittenShard& shard);

// The patched folder against what it was: the trunk's tensors under the same names, in the same
// files or rewritten ones, with the same bytes; the head's tensors as its file has them; no name in
// two files.
Result<void> check_patched(const std::filesystem::path& path, const Folder& before,
                           const CheckedHead& head);

}  // namespace paceline
