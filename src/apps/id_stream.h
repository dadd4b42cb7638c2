// Files of what runs wrote, as token ids: {"prompt", "token_ids"} a line, with or without a first
// line {"configuration": ...}, or the report of `generate --json`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/json_file.h"
#include "measure/drift.h"

namespace paceline::apps {

struct IdFile {
  std::vector<measure::IdStream> streams;
  Json configuration;  // null where the file says none
};

// Told by content. name: for messages. BadFormat where a line is neither; banner text is none.
Result<IdFile> parse_id_file(std::string_view text, std::string_view name);

// What decides the text of a run, of the head of its report and of one arm: two runs that agree in
// all of it are one configuration.
Json configuration_of(const Json& report, const Json& depth, const Json& drafter);

// A line of such a file.
std::string id_line(const std::vector<TokenId>& prompt_ids, const std::vector<TokenId>& ids);

}  // namespace paceline::apps
