// Copies of files that are whole, on disk, and equal to what was copied.
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.h"

namespace paceline {

// `from` (a link is followed) under the name `to`; then both are compared, byte for byte. `stop` is
// looked at between pieces.
Result<void> copy_whole_file(const std::filesystem::path& from, const std::filesystem::path& to,
                             const std::function<bool()>& stop = {});

}  // namespace paceline
