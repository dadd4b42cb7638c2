// Gap logs: for each token of a run, how far the second likeliest was behind the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/json_file.h"
#include "apps/stream.h"
#include "measure/guard.h"

namespace paceline::apps {

inline constexpr int kGapLogVersion = 1;

// A log: its first line, and the lines of one prompt's arm.
std::string gap_header_line(const Json& configuration);
std::string gap_lines(const std::string& prompt_id, const ArmResult& arm);

// The rows, rounds numbered through. name: for messages. BadFormat names the line.
Result<std::vector<measure::RowGap>> parse_gap_log(std::string_view text, std::string_view name);

}  // namespace paceline::apps
