#include "engine/head_search.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <system_error>

#include "base/sha256.h"
#include "fmt/format.h"
#include "io/shown.h"
#include "io/weight_file.h"
#include "models/head_check.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

void add(Sha256& sum, std::string_view text) { sum.update(std::as_bytes(std::span(text))); }

std::string digest_of(const HeadConfig& config, const Checkpoint& checkpoint) {
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : checkpoint.tensors())
    if (is_head_tensor(tensor.name)) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, [](const Tensor* t) -> const std::string& { return t->name; });
  Sha256 sum;
  for (const auto& [key, value] : head_metadata(config))
    add(sum, fmt::format("{} {}\n", key, value));
  for (const Tensor* tensor : tensors) {
    add(sum, tensor->name);
    sum.update(tensor->data);
  }
  return sum.finish();
}

fs::path program_heads_folder() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  return failure ? fs::path() : program.parent_path().parent_path() / "share/paceline/heads";
}

class Search {
 public:
  explicit Search(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  HeadSearch run(const fs::path& asked) {
    if (!asked.empty()) {
      result_.places.push_back(shown_path(asked));
      take_file(asked);
      return std::move(result_);
    }
    look_inside();
    if (!done() && checkpoint_.kind() == Checkpoint::Kind::Gguf) {
      const fs::path side = head_side_file(checkpoint_.path());
      result_.places.push_back(shown_path(side));
      std::error_code failure;
      if (fs::exists(side, failure)) take_file(side);
    }
    for (const fs::path& folder : heads_folders())
      if (!done()) look_in_folder(folder);
    return std::move(result_);
  }

 private:
  bool done() const { return result_.found || result_.fault; }

  void fail(const fs::path& file, const Error& error) {
    result_.fault = error;
    result_.fault_file = file;
  }

  // Where the family has no heads, loading the model says so.
  Result<void> check_shapes(const fs::path& file, const std::vector<HeadShape>& found,
                            int modules) const {
    const auto wanted = head_shapes(checkpoint_, modules);
    if (!wanted) return {};
    auto fits = check_head_shapes(found, *wanted);
    if (fits) return fits;
    return Error{fits.error().code, shown_path(file) + ": " + fits.error().message};
  }

  void look_inside() {
    result_.places.push_back("the checkpoint itself (mtp.* tensors)");
    if (std::ranges::none_of(checkpoint_.tensors(),
                             [](const Tensor& t) { return is_head_tensor(t.name); }))
      return;
    std::vector<HeadShape> shapes;
    for (const Tensor& tensor : checkpoint_.tensors())
      if (is_head_tensor(tensor.name)) shapes.push_back({tensor.name, tensor.shape});
    const auto config = head_config_of(checkpoint_);
    const auto fits = config ? check_shapes(checkpoint_.path(), shapes, config->modules)
                             : Result<void>(config.error());
    if (!fits) return fail(checkpoint_.path(), fits.error());
    auto head = read_head(checkpoint_);
    if (!head) return fail(checkpoint_.path(), head.error());
    const std::string sha256 = digest_of(head->config, checkpoint_);
    result_.found = FoundHead{std::move(*head), checkpoint_.path(), true, sha256};
  }

  void take_file(const fs::path& path) {
    const auto config = read_head_config(path);
    if (!config) return fail(path, config.error());
    const auto shapes = read_head_shapes(path);
    if (!shapes) return fail(path, shapes.error());
    if (auto fits = check_shapes(path, *shapes, config->modules); !fits)
      return fail(path, fits.error());
    auto head = read_head(path);
    if (!head) return fail(path, head.error());
    const auto file = open_weight_file(path, path.filename().string());
    if (!file) return fail(path, file.error());
    result_.found = FoundHead{std::move(*head), path, false, cached_sha256(*file)};
  }

  void look_in_folder(const fs::path& folder) {
    result_.places.push_back(shown_path(folder));
    for (const fs::path& path : files_in(folder, ".safetensors")) {
      const auto config = read_head_config(path);
      if (!config || config->trunk_sha256.empty()) continue;
      if (config->trunk_sha256 != checkpoint_.trunk_sha256()) continue;
      return take_file(path);
    }
  }

  const Checkpoint& checkpoint_;
  HeadSearch result_;
};

}  // namespace

fs::path head_side_file(const fs::path& model) {
  std::error_code failure;
  const fs::path real = fs::canonical(model, failure);
  const bool in_hub_cache = !failure && real.parent_path().filename() == "blobs";
  fs::path side = failure || in_hub_cache ? model : real;
  side += ".mtp.safetensors";
  return side;
}

fs::path user_heads_folder() {
  const char* const data = std::getenv("XDG_DATA_HOME");  // relative ones are to be ignored
  if (data != nullptr && data[0] == '/') return fs::path(data) / "paceline/heads";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return {};
  return fs::path(home) / ".local/share/paceline/heads";
}

std::vector<fs::path> heads_folders() {
  std::vector<fs::path> folders = {"heads"};
  for (const fs::path& folder : {program_heads_folder(), user_heads_folder()})
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (auto entry = fs::directory_iterator(folder, failure);
       !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (entry->path().extension() == extension) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

HeadSearch find_head(const Checkpoint& checkpoint, const fs::path& asked) {
  return Search(checkpoint).run(asked);
}

}  // namespace paceline
