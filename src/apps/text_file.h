// Reads whole files; standard input as "-".
#pragma once

#include <string>

#include "base/result.h"

namespace paceline::apps {

// At most 1 GiB; TooLarge beyond it. what: the flag, for messages.
Result<std::string> read_text(const std::string& what, const std::string& path);

}  // namespace paceline::apps
