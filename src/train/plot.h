// A run's history as a picture.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "train/history.h"

namespace paceline::train {

// An SVG of two panels over steps: losses, and served acceptance by depth with E.
std::string plot(std::span<const HistoryEntry> history);
Result<void> write_plot(const std::filesystem::path& file, std::span<const HistoryEntry> history);

}  // namespace paceline::train
