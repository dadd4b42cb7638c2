// Where a command's report goes as a page: nowhere, or a file.
#pragma once

#include "apps/flags.h"
#include "apps/json_file.h"
#include "apps/report_file.h"

namespace paceline::apps {

class HtmlFile {
 public:
  void add_flag(Flags& flags);

  bool wanted() const { return file_.path.has_value(); }
  const ReportFile* file() const { return &file_; }
  // The page of `report`, by its command (apps/pages.h).
  Result<void> write(const Json& report) const;

 private:
  ReportFile file_{"--html", /*takes_stdout=*/false};
};

}  // namespace paceline::apps
