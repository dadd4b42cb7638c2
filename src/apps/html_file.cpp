#include "apps/html_file.h"

#include "apps/pages.h"

namespace paceline::apps {

void HtmlFile::add_flag(Flags& flags) {
  flags.text(file_.flag(), "FILE", file_.path,
             "write the report as a page with plots that needs nothing else");
}

Result<void> HtmlFile::write(const Json& report) const {
  if (!wanted()) return {};
  const auto page = page_of(report);
  return page ? file_.write(*page) : Result<void>(page.error());
}

}  // namespace paceline::apps
