// The built-in prompt set: tools/prompts/bench.jsonl, put into the program when it is built.
#pragma once

#include <string_view>

namespace paceline::apps {

std::string_view bench_prompts();

}  // namespace paceline::apps
