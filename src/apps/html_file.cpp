#include "apps/html_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "apps/pages.h"

namespace paceline::apps {

void HtmlFile::add_flag(Flags& flags) {
  flags.text(file_.flag(), "FILE", file_.path,
             "write the report as a page with plots that needs nothing else");
}

Result<void> HtmlFile::check(const JsonFile& json, const std::string& input) const {
  if (auto ok = file_.check(input); !ok) return ok;
  const auto whole = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (wanted() && json.wanted() && !json.is_stdout() && whole(*file_.path) == whole(json.path()))
    return Error{ErrorCode::BadUsage,
                 fmt::format("{} {}: that is where --json goes", file_.flag(), *file_.path)};
  return {};
}

Result<void> HtmlFile::write(const Json& report) const {
  if (!wanted()) return {};
  const auto page = page_of(report);
  return page ? file_.write(*page) : Result<void>(page.error());
}

}  // namespace paceline::apps
