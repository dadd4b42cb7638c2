// What bench says: fields of the report, and a table for people.
#pragma once

#include "apps/json_file.h"
#include "measure/bench.h"

namespace paceline::apps {

void add_bench_json(const measure::BenchResult& result, Json& report);
// On standard output; `report` is complete.
void print_bench_table(const Json& report, const measure::BenchResult& result);

}  // namespace paceline::apps
