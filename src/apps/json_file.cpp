#include "apps/json_file.h"

namespace paceline::apps {

void JsonFile::add_flag(Flags& flags) {
  flags.text(file_.flag(), "FILE", file_.path, "write a report as JSON; - for standard output");
}

Result<void> JsonFile::write(const Json& json) const {
  if (!wanted()) return {};
  return file_.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace paceline::apps
