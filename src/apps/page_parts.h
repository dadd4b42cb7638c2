// What the pages of reports share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/page.h"
#include "apps/report_fields.h"

namespace paceline::apps {

// "bench of model.gguf"
std::string title_of(const Json& report);
// "2 threads, avx512-vnni, portable numerics, AMD EPYC, load 0.42, commit 0123abcd"
std::string subtitle_of(const Json& report);
// The head of a report, field by field.
Table head_table(const Json& report);
// "depth 4", "depth auto"
std::string arm_name(const Json& arm);

// Positions and differing ones by gap, as drift and trace-compare count them: a plot of the share
// that differs and, where asked for, one of the positions.
void add_by_gap(const Json& by_gap, bool with_positions, Page& page);

}  // namespace paceline::apps
