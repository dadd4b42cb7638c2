#include "apps/json_file.h"

namespace paceline::apps {

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void JsonFile::add_flag(Flags& flags) {
  flags.text(file_.flag(), "FILE", file_.path, "write a report as JSON; - for standard output");
}

Result<void> JsonFile::write(const Json& json) const {
  if (!wanted()) return {};
  return file_.write(json_text(json, 2) + "\n");
}

}  // namespace paceline::apps
