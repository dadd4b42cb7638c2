// The head of every report, the same fields in all of them (docs/formats.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/json_file.h"
#include "apps/prompt_flags.h"

namespace paceline::apps {

// Of the form of reports: goes up where a field changes its meaning or goes away.
inline constexpr int kReportVersion = 2;

// Which program, on which machine, under which load; what a command has none of (a model, threads,
// a seed) is null and filled in by those that have it. Taken before the work begins, so that the
// load is the machine's and not the run's.
Json report_head(const std::string& command);

// SHA-256 of the running program; remembered between runs. "" where it cannot be read.
std::string binary_sha256();
// SHA-256 of the model's trunk (io/checkpoint.h); null where there is none that the program could
// run.
Json sha256_of_model(const std::filesystem::path& model);
// SHA-256 of prompts as a trunk reads them: the ids of each joined by commas, a line each.
std::string sha256_of_prompts(const std::vector<Prompt>& prompts);

}  // namespace paceline::apps
