#include "apps/report_fields.h"

#include <fmt/format.h>

#include <cstddef>

namespace paceline::apps {
namespace {

const Json& nothing() {
  static const Json none;
  return none;
}

}  // namespace

const Json& at(const Json& object, std::string_view name) {
  if (!object.is_object()) return nothing();
  const auto found = object.find(name);
  return found == object.end() ? nothing() : *found;
}

const Json& at(const Json& array, size_t index) {
  return array.is_array() && index < array.size() ? array[index] : nothing();
}

Value number(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  return json.get<double>();
}

std::vector<Value> numbers(const Json& array) {
  std::vector<Value> values;
  if (!array.is_array()) return values;
  for (const Json& value : array) values.push_back(number(value));
  return values;
}

std::string shown(Value value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

std::string percent(Value share, int decimals) {
  return share ? fmt::format("{:.{}f} %", 100 * *share, decimals) : "-";
}

std::string yes_or_no(const Json& json) {
  if (!json.is_boolean()) return "-";
  return json.get<bool>() ? "yes" : "no";
}

std::string text_of(const Json& json) {
  if (json.is_null()) return "-";
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array() && !json.empty() && !at(json, 0).is_structured()) {
    std::string text;
    for (const Json& value : json) text += (text.empty() ? "" : ", ") + text_of(value);
    return text;
  }
  if (json.is_number_float()) return fmt::format("{:.6g}", json.get<double>());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string counted(Value value) {
  if (!value) return "-";
  std::string digits = fmt::format("{:.0f}", *value);
  for (auto place = static_cast<ptrdiff_t>(digits.size()) - 3; place > (*value < 0 ? 1 : 0);
       place -= 3)
    digits.insert(static_cast<size_t>(place), ",");
  return digits;
}

std::string base_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t slash = path.rfind('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

}  // namespace paceline::apps
