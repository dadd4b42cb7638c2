// Where a command's JSON goes: nowhere, a file, or standard output and nothing else there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/flags.h"
#include "apps/report_file.h"
#include "base/result.h"

namespace paceline::apps {

using Json = nlohmann::ordered_json;

// A document as text. Strings that are not valid UTF-8 get U+FFFD where they are not. indent: -1
// for one line.
std::string json_text(const Json& json, int indent);

class JsonFile {
 public:
  void add_flag(Flags& flags);

  bool wanted() const { return file_.path.has_value(); }
  const ReportFile* file() const { return &file_; }
  bool is_stdout() const { return file_.is_stdout(); }
  // Whether the file could be written, before any work is done. input: a file that it must not be.
  Result<void> check(const std::string& input = {}) const { return file_.check(input); }
  // Writes the whole file or leaves what was there.
  Result<void> write(const Json& json) const;

 private:
  ReportFile file_{"--json", /*takes_stdout=*/true};
};

}  // namespace paceline::apps
