#include "io/safetensors_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/shown.h"

namespace paceline {
namespace {

using nlohmann::json;

// Keeps the weight_map and skips the rest, one call a JSON token; false stops the parser.
class IndexHandler : public json::json_sax_t {
 public:
  std::vector<IndexedTensor> entries;
  bool map_seen = false;
  std::string error;

  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_integer(number_integer_t) override { return other_value(); }
  bool number_unsigned(number_unsigned_t) override { return other_value(); }
  bool number_float(number_float_t, const string_t&) override { return other_value(); }
  bool binary(binary_t&) override { return other_value(); }

  bool string(string_t& value) override {
    if (!in_map_ || depth_ != 2) return other_value();
    entries.back().file = std::move(value);
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_map_ && depth_ != 1) return other_value();
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(map_seen, true)) return fail("weight_map stands there twice");
    } else if (in_map_) {
      entries.push_back({std::move(name), ""});
    }
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_map_ || depth_ == 0) return other_value();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail(fmt::format("no valid JSON at byte {}", position));
  }

 private:
  bool fail(std::string why) {
    error = std::move(why);
    return false;
  }
  // Fine outside of the weight_map, as long as an object stands around it.
  bool other_value() {
    if (depth_ == 0) return fail("not a JSON object");
    if (!in_map_) return true;
    if (depth_ == 1) return fail("weight_map is not an object");
    return fail(fmt::format("weight_map: the file of tensor {} is not a string",
                            quoted_name(entries.back().tensor)));
  }

  int64_t depth_ = 0;
  bool in_map_ = false;
};

}  // namespace

bool leaves_folder(std::string_view file) {
  const bool drive = file.size() >= 2 && file[1] == ':';
  if (drive || file.find('\\') != std::string_view::npos ||
      file.find('\0') != std::string_view::npos) {
    return true;
  }
  while (true) {  // an absolute name has an empty first part
    const size_t slash = file.find('/');
    const std::string_view part = file.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return true;
    if (slash == std::string_view::npos) return false;
    file.remove_prefix(slash + 1);
  }
}

Result<std::vector<IndexedTensor>> read_safetensors_index(std::string_view text,
                                                          const std::string& name) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: {}", name, what)};
  };
  // The parser would take a zero byte for the end of its input.
  if (text.find('\0') != std::string_view::npos) return bad("no valid JSON, it holds a zero byte");
  IndexHandler handler;
  if (!json::sax_parse(text.begin(), text.end(), &handler)) return bad(handler.error);
  if (!handler.map_seen) return bad("no weight_map");
  if (handler.entries.empty()) return bad("weight_map names no tensors");

  std::ranges::sort(handler.entries, {}, &IndexedTensor::tensor);
  const auto twice = std::ranges::adjacent_find(handler.entries, {}, &IndexedTensor::tensor);
  if (twice != handler.entries.end()) {
    return bad(fmt::format("weight_map names tensor {} twice", quoted_name(twice->tensor)));
  }
  for (const IndexedTensor& entry : handler.entries) {
    if (leaves_folder(entry.file)) {
      return bad(
          fmt::format("weight_map puts tensor {} into {}, which is no plain name of a file in "
                      "this folder",
                      quoted_name(entry.tensor), quoted_name(entry.file)));
    }
  }
  return std::move(handler.entries);
}

}  // namespace paceline
