#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "io/safetensors_reader.h"
#include "io/shown.h"
#include "io/utf8.h"
#include "io/write_rows.h"
#include "io/writer.h"

namespace paceline {
namespace {

constexpr size_t kDataAlignment = 64;  // of the data section; a cache line
constexpr const char* kMetadataKey = "__metadata__";

Result<void> check_names(std::span<const TensorSpec> tensors,
                         const std::map<std::string, std::string>& metadata) {
  const auto bad = [](const std::string& name, const char* what) {
    return Error{
        ErrorCode::BadUsage,
        fmt::format("cannot write tensor {} to a safetensors file: {}", quoted_name(name), what)};
  };
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty()) return bad(tensor.name, "the name is empty");
    if (tensor.name == kMetadataKey) return bad(tensor.name, "the format reserves this name");
    if (!is_utf8(tensor.name)) return bad(tensor.name, "the name is no UTF-8");
    if (block_length(tensor.type) != 1) return bad(tensor.name, "the format has no such type");
    if (tensor.shape.size() > 8) return bad(tensor.name, "more than 8 dimensions");
  }
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      return Error{ErrorCode::BadUsage,
                   fmt::format("cannot write metadata {}: no UTF-8", quoted_name(key))};
    }
  }
  return {};
}

// The header's JSON; names and texts are UTF-8, so nothing in here can fail.
std::string header_json(std::span<const TensorSpec> tensors, std::span<const size_t> order,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header[kMetadataKey] = metadata;
  std::string text = header.dump();
  text.pop_back();  // its closing brace; a growing object would look each name up again
  int64_t begin = 0;
  for (const size_t i : order) {
    const TensorSpec& tensor = tensors[i];
    const int64_t end = begin + tensor.rows() * tensor.row_bytes();
    const nlohmann::ordered_json entry = {
        {"dtype", to_string(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    text += fmt::format(",{}:{}", nlohmann::json(tensor.name).dump(), entry.dump());
    begin = end;
  }
  return text + "}";
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const TensorSpec> tensors,
                               std::map<std::string, std::string> metadata, const FillRows& fill) {
  metadata.emplace("format", "pt");
  if (auto names = check_names(tensors, metadata); !names) return names;
  if (auto specs = check_specs(tensors); !specs) return specs;

  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return block_bytes(tensors[i].type); });
  std::string header = header_json(tensors, order, metadata);
  header.append((2 * kDataAlignment - 8 - header.size() % kDataAlignment) % kDataAlignment, ' ');
  const uint64_t length = header.size();
  if (length > kLongestSafetensorsHeader) {
    return Error{ErrorCode::TooLarge,
                 fmt::format("{}: the header would have {} bytes, the format's limit is {}",
                             shown_path(path), length, kLongestSafetensorsHeader)};
  }

  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto step = file->write(std::as_bytes(std::span(&length, 1))); !step) return step;
  if (auto step = file->write(std::as_bytes(std::span(header))); !step) return step;
  for (const size_t i : order) {
    if (auto step = write_rows(*file, tensors, i, fill); !step) return step;
  }
  return file->commit();
}

}  // namespace paceline
