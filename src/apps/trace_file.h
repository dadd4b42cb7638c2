// Traces as files: a line of JSON for the configuration, then one a row (docs/formats.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/json_file.h"
#include "measure/trace.h"

namespace paceline::apps {

inline constexpr int kTraceVersion = 1;

struct TraceFile {
  Json header;
  std::vector<measure::TracePoint> points;
};

// The first line and one of the others, line end included.
std::string trace_header_line(const Json& configuration);
std::string trace_line(const measure::TracePoint& point);

// name: for messages. BadFormat names the line. A logit's bits and its decimal form must agree
// where both are there; a trace of another engine may lack the bits, and the sum of all logits.
Result<TraceFile> parse_trace(std::string_view text, std::string_view name);

}  // namespace paceline::apps
