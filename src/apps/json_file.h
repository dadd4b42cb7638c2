// Where a command's JSON goes: nowhere, a file, or standard output and nothing else there.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/flags.h"
#include "base/result.h"

namespace paceline::apps {

using Json = nlohmann::ordered_json;

class JsonFile {
 public:
  void add_flag(Flags& flags);

  bool wanted() const { return path_.has_value(); }
  bool is_stdout() const { return path_ == "-"; }
  // Whether the file could be written, before any work is done. input: a file that it must not be.
  Result<void> check(const std::string& input = {}) const;
  // Writes the whole file or leaves what was there: a new file beside it, then a rename. Text that
  // is not valid UTF-8 gets U+FFFD where it is not.
  Result<void> write(const Json& json) const;

 private:
  std::optional<std::string> path_;
};

}  // namespace paceline::apps
