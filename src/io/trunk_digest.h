// The identity of the trunk in a folder, whatever draft head lies beside it.
#pragma once

#include <filesystem>
#include <string>

#include "io/folder.h"

namespace paceline {

// SHA-256 of the lines "digest  tensors" and, where there is a config.json, "digest  config.json",
// each with a newline, since a folder's settings decide what its weights compute. The first digest
// is that of all tensors but a head's, in the order of their names: of each a line
//   LENGTH NAME TYPE D0,D1 BYTES      LENGTH: bytes of the name; "22 model.embed_tokens.w BF16 ..."
// and then its bytes. So it does not depend on how the tensors are spread over files, nor on a head
// that is put among them, replaced or taken out.
//
// The digest of the tensors is remembered for the folder's absolute path (io/weight_file.h) and
// taken from there while the files that hold them, and their places in these, are the same.
std::string trunk_digest(const std::filesystem::path& path, const Folder& folder);

}  // namespace paceline
