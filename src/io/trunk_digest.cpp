#include "io/trunk_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "io/weight_file.h"

namespace paceline {
namespace {

void add(Sha256& sum, std::string_view text) { sum.update(std::as_bytes(std::span(text))); }

std::vector<const Tensor*> trunk_tensors(const Folder& folder) {
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : folder.tensors)
    if (!is_head_tensor(tensor.name)) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, [](const Tensor* t) -> const std::string& { return t->name; });
  return tensors;
}

std::string line_of(const Tensor& tensor) {
  return fmt::format("{} {} {} {} {}\n", tensor.name.size(), tensor.name, to_string(tensor.type),
                     fmt::join(tensor.shape, ","), tensor.data.size());
}

// What tells one state of the tensors from another without reading them; empty where a file was
// changed while it was opened.
std::string state_of(const Folder& folder, std::span<const Tensor* const> tensors) {
  Sha256 sum;
  for (const Tensor* tensor : tensors) {
    const WeightFile& file = file_of(folder, *tensor);
    const auto bytes = file.map.bytes();
    if (bytes.size() != file.stamp.size) return {};
    add(sum, line_of(*tensor));
    add(sum, fmt::format("{} {} {} {}\n", tensor->data.data() - bytes.data(), file.stamp.size,
                         file.stamp.mtime_ns, file.stamp.inode));
  }
  return sum.finish();
}

std::string digest_of(std::span<const Tensor* const> tensors) {
  Sha256 sum;
  for (const Tensor* tensor : tensors) {
    add(sum, line_of(*tensor));
    sum.update(tensor->data);
  }
  return sum.finish();
}

}  // namespace

std::string trunk_digest(const std::filesystem::path& path, const Folder& folder) {
  const std::vector<const Tensor*> tensors = trunk_tensors(folder);
  Sha256 sum;
  add(sum, remembered_digest("trunk", path, state_of(folder, tensors), [&] {
             return digest_of(tensors);
           }) + "  tensors\n");
  if (!folder.config_json.empty())
    add(sum, sha256(std::as_bytes(std::span(folder.config_json))) + "  config.json\n");
  return sum.finish();
}

}  // namespace paceline
