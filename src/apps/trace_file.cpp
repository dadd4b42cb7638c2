#include "apps/trace_file.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "io/json_parse.h"
#include "io/shown.h"

namespace paceline::apps {
namespace {

Error bad_line(std::string_view name, int line, std::string_view what) {
  return {ErrorCode::BadFormat, fmt::format("{} line {}: {}", name, line, what)};
}

constexpr const char* kRowForm =
    R"(wants {"piece", "position", "next", "nll", "log_sum", "top": [[id, logit, "bits"], ...]})";

bool read_index(const Json& row, const char* name, int& to) {
  const auto value = row.find(name);
  if (value == row.end() || !value->is_number_unsigned()) return false;
  if (value->get<uint64_t>() > 0x7fffffffu) return false;
  to = value->get<int>();
  return true;
}

// [id, logit] or [id, logit, "3f800000"].
const char* read_logit(const Json& entry, std::pair<TokenId, float>& to) {
  if (!entry.is_array() || entry.size() < 2 || entry.size() > 3) return kRowForm;
  if (!entry[0].is_number_unsigned() || entry[0].get<uint64_t>() > 0x7fffffffu) return kRowForm;
  if (!entry[1].is_number()) return kRowForm;
  to = {entry[0].get<TokenId>(), static_cast<float>(entry[1].get<double>())};
  if (!std::isfinite(to.second)) return "a logit is not finite";
  if (entry.size() == 2) return nullptr;
  if (!entry[2].is_string()) return kRowForm;
  const auto& hex = entry[2].get_ref<const std::string&>();
  uint32_t bits = 0;
  const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  if (hex.size() != 8 || read.ec != std::errc() || read.ptr != hex.data() + hex.size())
    return "the bits of a logit are 8 hexadecimal digits";
  const auto exact = std::bit_cast<float>(bits);  // -0 reads as 0 in decimals
  if (exact != to.second) return "a logit and its bits are not the same";
  to.second = exact;
  return nullptr;
}

const char* read_row(const Json& row, measure::TracePoint& point) {
  if (!row.is_object() || !read_index(row, "piece", point.piece) ||
      !read_index(row, "position", point.position) || !read_index(row, "next", point.next))
    return kRowForm;
  const auto nll = row.find("nll");
  const auto top = row.find("top");
  if (nll == row.end() || !nll->is_number() || top == row.end() || !top->is_array())
    return kRowForm;
  point.nll = nll->get<double>();
  const auto sum = row.find("log_sum");
  if (sum != row.end() && !sum->is_null() && !sum->is_number()) return kRowForm;
  point.log_sum = sum != row.end() && sum->is_number() ? sum->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
  if (top->empty()) return "a row has no logits";
  point.top.resize(top->size());
  for (size_t i = 0; i < top->size(); ++i) {
    if (const char* fault = read_logit((*top)[i], point.top[i])) return fault;
    if (i == 0) continue;
    const auto& [id, logit] = point.top[i];
    const auto& before = point.top[i - 1];
    if (logit > before.second || (logit == before.second && id <= before.first))
      return "logits stand in descending order, of equals the lowest id first";
  }
  return nullptr;
}

}  // namespace

std::string trace_header_line(const Json& configuration) {
  return Json{{"trace", kTraceVersion}, {"configuration", configuration}}.dump() + "\n";
}

std::string trace_line(const measure::TracePoint& point) {
  std::string line = fmt::format(
      R"({{"piece": {}, "position": {}, "next": {}, "nll": {:.9g}, "log_sum": {:.9g}, "top": [)",
      point.piece, point.position, point.next, point.nll, point.log_sum);
  for (size_t i = 0; i < point.top.size(); ++i) {
    const auto& [id, logit] = point.top[i];
    fmt::format_to(std::back_inserter(line), R"({}[{}, {:.9g}, "{:08x}"])", i > 0 ? ", " : "", id,
                   logit, std::bit_cast<uint32_t>(logit));
  }
  return line + "]}\n";
}

Result<TraceFile> parse_trace(std::string_view text, std::string_view name) {
  TraceFile file;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const Json json = parse_json<Json>(line);
    if (line_number == 1) {
      if (!json.is_object() || !json.contains("trace") || !json.contains("configuration"))
        return bad_line(name, 1, R"(wants {"trace": 1, "configuration": {...}})");
      if (json["trace"] != kTraceVersion)
        return bad_line(name, 1,
                        fmt::format("a trace of version {}; this program reads version {}",
                                    json["trace"].dump(), kTraceVersion));
      file.header = json["configuration"];
      continue;
    }
    measure::TracePoint point;
    if (const char* fault = read_row(json, point)) return bad_line(name, line_number, fault);
    file.points.push_back(std::move(point));
  }
  if (file.points.empty())
    return Error{ErrorCode::BadFormat, fmt::format("{} holds no row of a trace", name)};
  return file;
}

}  // namespace paceline::apps
