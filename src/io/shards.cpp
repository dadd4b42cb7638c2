#include "io/shards.h"

#include <nlohmann/json.hpp>

#include "io/output_file.h"
#include "io/part_name.h"

namespace paceline {
namespace {

int64_t bytes_of(const TensorSpec& tensor) { return tensor.rows() * tensor.row_bytes(); }

// Where each shard begins, and the end.
std::vector<size_t> shard_starts(std::span<const TensorSpec> tensors, int64_t shard_bytes) {
  std::vector<size_t> starts{0};
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t more = bytes_of(tensors[i]);
    if (i > starts.back() && more > shard_bytes - bytes) {
      starts.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  starts.push_back(tensors.size());
  return starts;
}

}  // namespace

Result<std::vector<std::string>> write_shards(const std::filesystem::path& folder,
                                              std::span<const TensorSpec> tensors,
                                              const std::map<std::string, std::string>& metadata,
                                              int64_t shard_bytes, const FillRows& fill) {
  const std::vector<size_t> starts = shard_starts(tensors, shard_bytes);
  const int count = static_cast<int>(starts.size()) - 1;
  nlohmann::json weight_map = nlohmann::json::object();
  std::vector<std::string> names;
  int64_t bytes = 0;
  for (int shard = 0; shard < count; ++shard) {
    const size_t first = starts[static_cast<size_t>(shard)];
    const auto part = tensors.subspan(first, starts[static_cast<size_t>(shard) + 1] - first);
    names.push_back(count == 1 ? "model.safetensors"
                               : PartName{"model", ".safetensors", shard + 1, count}.text());
    const FillRows fill_part = [&](size_t tensor, int64_t first_row, std::span<std::byte> rows) {
      return fill(first + tensor, first_row, rows);
    };
    if (auto done = write_safetensors(folder / names.back(), part, metadata, fill_part); !done)
      return done.error();
    for (const TensorSpec& tensor : part) {
      weight_map[tensor.name] = names.back();
      bytes += bytes_of(tensor);
    }
  }
  if (count == 1) return names;
  const nlohmann::json index{{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}};
  names.emplace_back("model.safetensors.index.json");
  if (auto done = write_text_file(folder / names.back(), index.dump(2) + "\n"); !done)
    return done.error();
  return names;
}

}  // namespace paceline
