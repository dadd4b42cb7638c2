// Runs a parsed chat template.
#pragma once

#include "base/result.h"
#include "text/jinja_ast.h"

namespace paceline::jinja {

// What the template writes, given the variables of `globals`. Ends within bounded time, stack and
// memory whatever the template does.
Result<Text> render(const Body& body, const Dict& globals);

}  // namespace paceline::jinja
