// Where one form of a report goes: nowhere, a file, or standard output.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace paceline::apps {

class ReportFile {
 public:
  // flag: its name, for messages.
  ReportFile(std::string flag, bool takes_stdout)
      : flag_(std::move(flag)), takes_stdout_(takes_stdout) {}

  const std::string& flag() const { return flag_; }
  bool is_stdout() const { return path == "-"; }
  // Whether the file could be written, before any work is done. input: a file that it must not be.
  Result<void> check(const std::string& input) const;
  // Writes the whole file or leaves what was there: a new file beside it, then a rename.
  Result<void> write(std::string_view text) const;

  std::optional<std::string> path;  // as given

 private:
  std::string flag_;
  bool takes_stdout_;
};

// The same of several before any work is done: none of them is an input, and no two are one file.
Result<void> check_outputs(std::initializer_list<const ReportFile*> outputs,
                           std::span<const std::string> inputs);

}  // namespace paceline::apps
