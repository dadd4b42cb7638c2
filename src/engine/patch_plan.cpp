#include "engine/patch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "engine/patch.h"
#include "io/json_parse.h"
#include "io/safetensors_reader.h"
#include "io/shown.h"
#include "io/utf8.h"
#include "io/writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // keys sorted, as indexes have them; linear in their number

Error bad(const fs::path& path, const std::string& what) {
  return {ErrorCode::BadFormat, fmt::format("{}: {}", shown_path(path), what)};
}

// Files of the folder that loaders which go by the ending would read, sorted.
std::vector<std::string> weight_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (auto entry = fs::directory_iterator(folder, failure);
       !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().native();
    std::error_code ignored;
    if (name.ends_with(".safetensors") && fs::is_regular_file(entry->path(), ignored))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Where a file holds a head, what becomes of it.
Result<void> move_head_out(const WeightFile& file, bool used, FolderPatch& patch) {
  const std::string place = shown_path(file.path);
  auto contents = read_safetensors(file.map.bytes(), place);
  if (!contents && !used) return {};  // a stray that nobody reads
  if (!contents) return contents.error();
  std::vector<Tensor> kept;
  for (const Tensor& tensor : contents->tensors)
    if (!is_head_tensor(tensor.name)) kept.push_back(tensor);
  if (kept.size() == contents->tensors.size()) return {};
  if (kept.empty()) {
    patch.removed.push_back(file.name);
  } else if (used) {
    patch.rewritten.push_back(
        {file.name, std::move(kept), {contents->metadata.begin(), contents->metadata.end()}});
  } else {
    patch.warnings.push_back(fmt::format(
        "{}: not named by {}, and it holds a head of its own beside other tensors; loaders that "
        "read every file will meet names twice",
        place, kIndexName));
  }
  return {};
}

Result<Json> current_index(const fs::path& path, const Folder& folder) {
  const fs::path file = path / kIndexName;
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    const auto opened = open_weight_file(file, kIndexName);
    if (!opened) return opened.error();
    const auto bytes = opened->map.bytes();
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    auto index = parse_json<Json>({text, bytes.size()});
    if (index.is_discarded())  // open_folder() has read it
      return bad(file, fmt::format("brackets nested deeper than {} are not read", kDeepestNesting));
    return index;
  }
  Json weight_map = Json::object();
  for (const Tensor& tensor : folder.tensors) {
    const std::string& name = file_of(folder, tensor).name;
    if (!is_utf8(name))
      return bad(path / name, "an index cannot name this file, it is no UTF-8; rename it");
    weight_map[tensor.name] = name;
  }
  return Json{{"metadata", Json::object()}, {"weight_map", std::move(weight_map)}};
}

Result<std::string> new_index(const fs::path& path, const Folder& folder, const CheckedHead& head) {
  auto index = current_index(path, folder);
  if (!index) return index.error();
  Json weight_map = Json::object();
  int64_t bytes = 0;
  for (const auto& [name, file] : (*index)["weight_map"].items())
    if (!is_head_tensor(name)) weight_map[name] = file;
  for (const Tensor& tensor : folder.tensors)
    if (!is_head_tensor(tensor.name)) bytes += static_cast<int64_t>(tensor.data.size());
  for (const Tensor& tensor : head.contents.tensors) {
    weight_map[tensor.name] = kHeadShard;
    bytes += static_cast<int64_t>(tensor.data.size());
  }
  (*index)["weight_map"] = std::move(weight_map);
  Json& metadata = (*index)["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  metadata["total_size"] = bytes;
  return index->dump(2) + "\n";
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.data, b.data);
}

}  // namespace

uint64_t RewrittenShard::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor& tensor : kept) bytes += tensor.data.size();
  return bytes;
}

std::vector<std::string> FolderPatch::names() const {
  std::vector<std::string> names{kHeadShard, kIndexName};
  for (const RewrittenShard& shard : rewritten) names.push_back(shard.name);
  names.insert(names.end(), removed.begin(), removed.end());
  return names;
}

uint64_t FolderPatch::bytes_to_write(const CheckedHead& head) const {
  constexpr uint64_t kForHeaders = uint64_t{1} << 20;  // of shards, and the journal
  uint64_t bytes = head.file.map.bytes().size() + index_text.size() + kForHeaders;
  for (const RewrittenShard& shard : rewritten) bytes += shard.bytes();
  return bytes;
}

Result<FolderPatch> plan_folder_patch(const fs::path& path, const Folder& folder,
                                      const CheckedHead& head) {
  FolderPatch patch;
  std::set<std::string> used;
  for (const WeightFile& file : folder.files) {
    used.insert(file.name);
    if (file.name != kHeadShard) {
      if (auto moved = move_head_out(file, true, patch); !moved) return moved.error();
      continue;
    }
    for (const Tensor& tensor : folder.tensors)
      if (!is_head_tensor(tensor.name) && &file_of(folder, tensor) == &file)
        return bad(file.path, fmt::format("a patch writes the head under this name, and {} lies "
                                          "here; rename the file, in {} too",
                                          quoted_name(tensor.name), kIndexName));
  }
  for (const std::string& name : weight_names(path)) {
    if (name == kHeadShard || used.contains(name)) continue;
    const auto file = open_weight_file(path / name, name);
    if (!file) continue;
    if (auto moved = move_head_out(*file, false, patch); !moved) return moved.error();
  }
  auto index = new_index(path, folder, head);
  if (!index) return index.error();
  patch.index_text = std::move(*index);
  return patch;
}

Result<void> write_rewritten(const fs::path& to, const RewrittenShard& shard) {
  std::vector<TensorSpec> specs;
  specs.reserve(shard.kept.size());
  for (const Tensor& tensor : shard.kept) specs.push_back({tensor.name, tensor.type, tensor.shape});
  return write_safetensors(
      to, specs, shard.metadata,
      [&](size_t index, int64_t first_row, std::span<std::byte> rows) -> Result<void> {
        const auto first = static_cast<size_t>(first_row * specs[index].row_bytes());
        std::ranges::copy(shard.kept[index].data.subspan(first, rows.size()), rows.begin());
        return {};
      });
}

Result<void> check_patched(const fs::path& path, const Folder& before, const CheckedHead& head) {
  const auto after = open_folder(path, Unfinished::Allowed);
  if (!after) return after.error();
  std::map<std::string_view, const Tensor*> found;
  for (const Tensor& tensor : after->tensors) found[tensor.name] = &tensor;
  const auto check_one = [&](const Tensor& wanted, bool is_head) -> Result<void> {
    const auto entry = found.find(wanted.name);
    if (entry == found.end())
      return bad(path, fmt::format("{} is not there after the patch", quoted_name(wanted.name)));
    const WeightFile& now = file_of(*after, *entry->second);
    if (is_head != (now.name == kHeadShard))
      return bad(path, fmt::format("{} lies in {} after the patch", quoted_name(wanted.name),
                                   quoted_name(now.name)));
    // A file that was not touched need not be read.
    const bool untouched = !is_head && file_of(before, wanted).stamp == now.stamp;
    if (!untouched && !same_tensor(*entry->second, wanted))
      return bad(path, fmt::format("{} reads back other than it was", quoted_name(wanted.name)));
    found.erase(entry);
    return {};
  };
  for (const Tensor& tensor : before.tensors)
    if (!is_head_tensor(tensor.name))
      if (auto same = check_one(tensor, false); !same) return same;
  for (const Tensor& tensor : head.contents.tensors)
    if (auto same = check_one(tensor, true); !same) return same;
  if (!found.empty())
    return bad(path, fmt::format("{} is there after the patch and should not be",
                                 quoted_name(found.begin()->first)));
  return {};
}

}  // namespace paceline
