#include "apps/gap_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/json_file.h"
#include "io/json_parse.h"

namespace paceline::apps {

std::string gap_header_line(const Json& configuration) {
  return Json{{"gap_log", kGapLogVersion}, {"configuration", configuration}}.dump() + "\n";
}

std::string gap_lines(const std::string& prompt_id, const ArmResult& arm) {
  const std::string prompt = Json(prompt_id).dump();
  std::string lines;
  int round = 0;  // the prefill's token stands in a round of its own
  for (size_t i = 0; i < arm.gaps.size(); ++i) {
    const TokenGap& row = arm.gaps[i];
    fmt::format_to(std::back_inserter(lines),
                   R"({{"prompt": {}, "round": {}, "position": {}, "token": {}, "top1": {}, )"
                   R"("top2": {}, "gap": {:.9g}}})"
                   "\n",
                   prompt, round, row.position, row.token, row.top1, row.top2, row.gap);
    if (row.ends_round) ++round;
  }
  return lines;
}

Json gap_histogram_json(const measure::GapHistogram& histogram) {
  return Json{{"width", measure::GapHistogram::kWidth}, {"counts", histogram.counts}};
}

Result<std::vector<measure::RowGap>> parse_gap_log(std::string_view text, std::string_view name) {
  std::vector<measure::RowGap> rows;
  int line_number = 0;
  int round = -1;
  Json last_prompt;
  Json last_round;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const Json json = parse_json<Json>(line);
    const auto bad = [&](std::string_view what) {
      return Error{ErrorCode::BadFormat, fmt::format("{} line {}: {}", name, line_number, what)};
    };
    if (line_number == 1) {
      if (!json.is_object() || json.value("gap_log", Json()) != kGapLogVersion)
        return bad(
            fmt::format(R"(wants {{"gap_log": {}, "configuration": {{...}}}})", kGapLogVersion));
      continue;
    }
    const bool good = json.is_object() && json.contains("prompt") && json.contains("round") &&
                      json["round"].is_number_unsigned() && json.contains("gap") &&
                      json["gap"].is_number() && json["gap"].get<double>() >= 0;
    if (!good)
      return bad(R"(wants {"prompt", "round", "position", "token", "top1", "top2", "gap"})");
    if (json["prompt"] != last_prompt || json["round"] != last_round) ++round;
    last_prompt = json["prompt"];
    last_round = json["round"];
    rows.push_back({.round = round, .gap = json["gap"].get<float>()});
  }
  if (rows.empty())
    return Error{ErrorCode::BadFormat, fmt::format("{} holds no row of a gap log", name)};
  return rows;
}

}  // namespace paceline::apps
