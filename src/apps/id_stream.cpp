#include "apps/id_stream.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/values.h"
#include "io/json_parse.h"

namespace paceline::apps {
namespace {

// An arm's depth, with the drafts of its tree where it says how many: 4, "auto", "8:15".
Json shape_of(const Json& arm) {
  Json depth = arm.value("depth", Json());
  const Json tree = arm.value("tree", Json());
  if (!tree.is_number_integer()) return depth;
  return (depth.is_string() ? depth.get<std::string>() : depth.dump()) + ":" + tree.dump();
}

bool read_ids(const Json& object, const char* name, std::vector<TokenId>& ids) {
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return false;
  ids.reserve(list->size());
  for (const Json& value : *list) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > 0x7fffffffu) return false;
    ids.push_back(value.get<TokenId>());
  }
  return true;
}

// The prompt names the stream: its text, or its ids.
bool read_prompt(const Json& object, const char* name, std::string& prompt) {
  const auto given = object.find(name);
  if (given == object.end()) return false;
  if (given->is_string()) {
    prompt = given->get<std::string>();
    return true;
  }
  std::vector<TokenId> ids;
  if (!read_ids(object, name, ids)) return false;
  prompt = join_ids(ids);
  return true;
}

bool is_object_with(const Json& json, const char* name) {
  return json.is_object() && json.contains(name);
}

Result<IdFile> read_report(const Json& report, std::string_view name) {
  IdFile file;
  const Error bad{ErrorCode::BadFormat,
                  fmt::format("{}: wants a report of generate with one arm a prompt", name)};
  const Json& results = report["results"];
  if (!results.is_array()) return bad;
  for (const Json& result : results) {
    if (!is_object_with(result, "arms") || !result["arms"].is_array() || result["arms"].size() != 1)
      return bad;
    const Json& arm = result["arms"][0];
    measure::IdStream stream;
    if (!arm.is_object() || !read_prompt(result, "prompt_ids", stream.prompt) ||
        !read_ids(arm, "token_ids", stream.ids))
      return bad;
    file.configuration = configuration_of(report, shape_of(arm), arm.value("drafter", Json()));
    file.streams.push_back(std::move(stream));
  }
  if (file.streams.empty()) return bad;
  return file;
}

}  // namespace

Json configuration_of(const Json& report, const Json& depth, const Json& drafter) {
  Json configuration = Json::object();
  for (const char* name : {"model_sha256", "head_sha256", "numerics", "kernels", "instruction_set",
                           "threads", "weights", "cache", "context", "seed", "sampling"})
    configuration[name] = report.value(name, Json());
  configuration["depth"] = depth;
  configuration["drafter"] = drafter;
  return configuration;
}

std::string id_line(const std::vector<TokenId>& prompt_ids, const std::vector<TokenId>& ids) {
  return Json{{"prompt", prompt_ids}, {"token_ids", ids}}.dump() + "\n";
}

Result<IdFile> parse_id_file(std::string_view text, std::string_view name) {
  if (const Json whole = parse_json<Json>(text); is_object_with(whole, "results"))
    return read_report(whole, name);
  IdFile file;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = parse_json<Json>(line);
    if (line_number == 1 && is_object_with(json, "configuration")) {
      file.configuration = json["configuration"];
      continue;
    }
    measure::IdStream stream;
    if (!json.is_object() || !read_prompt(json, "prompt", stream.prompt) ||
        !read_ids(json, "token_ids", stream.ids))
      return Error{
          ErrorCode::BadFormat,
          fmt::format("{} line {}: wants {{\"prompt\": text or ids, \"token_ids\": [ids]}}", name,
                      line_number)};
    file.streams.push_back(std::move(stream));
  }
  if (file.streams.empty())
    return Error{ErrorCode::BadFormat, fmt::format("{} holds no run", name)};
  return file;
}

}  // namespace paceline::apps
