// Which reports may be laid side by side.
#pragma once

#include <string>
#include <vector>

#include "apps/json_file.h"

namespace paceline::apps {

// A condition that differs between reports although a comparison needs it to be the same.
struct Unfair {
  std::string field;
  std::string why;  // what differs, in words: "another trunk"
  std::vector<Json> values;
};

// Of at least two reports of one command. What may differ is what one wants to compare: program,
// commit, depths, drafter, seconds.
std::vector<Unfair> unfair_conditions(const std::vector<Json>& reports);

// "threads (2 and 4), model_sha256 (another trunk: 12ab34cd… and 56ef…)"
std::string listed(const std::vector<Unfair>& conditions);

}  // namespace paceline::apps
