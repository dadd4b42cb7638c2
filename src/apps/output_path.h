// Where a command writes: what can stand there, found out before any work is done.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace paceline::apps {

// No folder, a folder around it that may be written to, and none of the inputs. An input that is a
// folder, a checkpoint or a dump, has files of its own that it must not be either. flag: for the
// error, "--out".
Result<void> check_output(const std::string& flag, const std::string& path,
                          std::span<const std::string> inputs);

// Pipes, devices, folders and the like cannot be replaced by a rename.
bool is_special(const std::string& path);
// The file to replace: a link keeps pointing to the file that it pointed to, there or not.
std::string target_of(const std::string& path);
// "--json FILE: cannot write: No space left on device", of errno.
Error io_error(const std::string& flag, const std::string& path, const char* what);

}  // namespace paceline::apps
