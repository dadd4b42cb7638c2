// Tokens of a chat template to its tree. What the evaluator does not know is refused here, by name
// and line.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja_ast.h"

namespace paceline::jinja {

Result<Body> parse(std::string_view source);

}  // namespace paceline::jinja
