// Files that are put into the program when it is built (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace paceline::apps {

std::string_view bench_prompts();  // tools/prompts/bench.jsonl
std::string_view drift_prompts();  // tools/prompts/drift.jsonl

// Of HTML reports: src/apps/page.css and page.js, and uPlot, which draws; empty where the build had
// no uPlot.
std::string_view page_style();
std::string_view page_script();
std::string_view uplot_style();
std::string_view uplot_script();
std::string_view uplot_licence();

}  // namespace paceline::apps
