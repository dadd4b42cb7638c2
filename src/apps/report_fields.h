// Fields of reports, for those who read them. A report may come from a file that somebody else
// wrote, so every field may be missing or of another kind; it then counts as not measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/json_file.h"

namespace paceline::apps {

using Value = std::optional<double>;  // none: not measured

// The field, or null where there is none.
const Json& at(const Json& object, std::string_view name);
const Json& at(const Json& array, size_t index);
Value number(const Json& json);
std::vector<Value> numbers(const Json& array);

// "1.25"; "-" for what was not measured.
std::string shown(Value value, int decimals);
// "84 %"
std::string percent(Value share, int decimals = 0);
std::string yes_or_no(const Json& json);
// Text as it is, other values as JSON, null as "-".
std::string text_of(const Json& json);
// "1,234,567"
std::string counted(Value value);
// The last part of a path: "model.gguf".
std::string base_name(const std::string& path);

}  // namespace paceline::apps
