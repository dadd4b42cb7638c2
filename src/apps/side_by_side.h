// The numbers of several reports of one command, in columns.
#pragma once

#include <string>
#include <vector>

#include "apps/fairness.h"
#include "apps/json_file.h"

namespace paceline::apps {

// Adds to `side_by_side`: `compared` (the command), `runs` (file, version, commit, noisy), `fair`,
// `unfair`, `same_state` (whether a pass of a few rows cost the same in all runs), `arms` (of
// bench: those that all reports have, matched by depth; every value a list, one entry a report;
// `agree`: whether the intervals of the speedup over the prompts that were run have a point in
// common, null where one has none) and `measures` (every other number: `name`, `values`).
void add_side_by_side(const std::vector<std::string>& paths, const std::vector<Json>& reports,
                      const std::vector<Unfair>& unfair, Json& side_by_side);
// A sentence where the machine changed between the runs, else nothing.
std::string changed_machine(const Json& side_by_side);
// On standard output.
void print_side_by_side(const Json& side_by_side);

}  // namespace paceline::apps
