// Reads and writes whole files; reads standard input as "-".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace paceline::apps {

// At most 1 GiB; TooLarge beyond it. what: the flag, for messages.
Result<std::string> read_text(const std::string& what, const std::string& path);

// The file appears whole or not at all (io/output_file.h).
Result<void> write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace paceline::apps
