// The part of `bench` that decodes several sequences together.
#pragma once

#include <string_view>
#include <vector>

#include "apps/json_file.h"
#include "measure/batch.h"

namespace paceline::apps {

// "1,4,16": sequences side by side.
Result<std::vector<int>> parse_batch_sizes(std::string_view text);

Json batch_json(const measure::BatchResult& result);
void print_batches(const measure::BatchResult& result);

}  // namespace paceline::apps
