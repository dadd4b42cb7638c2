// What parity found, as JSON and as a table.
#pragma once

#include "apps/json_file.h"
#include "measure/parity.h"

namespace paceline::apps {

void add_parity_json(const measure::ParityResult& result, Json& report);
// A line for each operation and shape, types that agree together; then the places that differ.
void print_parity_table(const measure::ParityResult& result);

}  // namespace paceline::apps
