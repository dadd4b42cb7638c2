// Small things remembered from run to run, in the user's cache folder: $XDG_CACHE_HOME/paceline,
// else ~/.cache/paceline. Where it cannot be read or written, nothing is remembered.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// The first line remembered of `key` (any text) among things of one kind, "sha256" say.
std::optional<std::string> recall(std::string_view kind, std::string_view key);
// Replaces it, whole or not at all.
void remember(std::string_view kind, std::string_view key, std::string_view line);

}  // namespace paceline
