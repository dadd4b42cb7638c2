#include "io/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "io/folder_edit.h"
#include "io/json_parse.h"
#include "io/part_name.h"
#include "io/safetensors_index.h"
#include "io/safetensors_reader.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

constexpr size_t kNamesInAnError = 20;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLargestIndex = 256 * kMiB;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The whole file; empty when there is none, so a file of no bytes (a download cut short) is
// refused.
Result<std::string> read_text(const fs::path& path, uint64_t limit) {
  if (!is_there(path)) return std::string();
  if (!is_file(path)) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: not a regular file", shown_path(path))};
  }
  std::error_code failure;
  const uint64_t size = fs::file_size(path, failure);
  if (failure) {
    return Error{ErrorCode::Io, fmt::format("{}: {}", shown_path(path), failure.message())};
  }
  if (size == 0) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: the file is empty; remove it or fetch it "
                                                   "again",
                                                   shown_path(path))};
  }
  if (size > limit) {
    return Error{ErrorCode::TooLarge, fmt::format("{}: the file has {} bytes, the limit is {}",
                                                  shown_path(path), size, limit)};
  }
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in) return Error{ErrorCode::Io, fmt::format("{}: cannot be read", shown_path(path))};
  return text;
}

// Names of the files in a folder with this ending, sorted; hidden ones are no weights.
Result<std::vector<std::string>> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  while (!failure && entry != fs::directory_iterator()) {
    const std::string name = entry->path().filename().native();
    if (name.ends_with(ending) && !name.starts_with('.') && is_file(entry->path())) {
      names.push_back(name);
    }
    entry.increment(failure);
  }
  if (failure) {
    return Error{ErrorCode::Io, fmt::format("{}: {}", shown_path(folder), failure.message())};
  }
  std::ranges::sort(names);
  return names;
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const auto [rest, _] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return rest == folder.end();
}

class FolderReader {
 public:
  explicit FolderReader(const fs::path& path) : path_(path) {}

  Result<Folder> read() {
    auto names = files_ending(path_, ".safetensors");
    if (!names) return names.error();
    if (auto step = is_there(path_ / kIndexName) ? read_shards(*names) : read_single(*names);
        !step) {
      return step.error();
    }
    if (auto step = read_texts(); !step) return step.error();
    return std::move(folder_);
  }

 private:
  Error error(ErrorCode code, const std::string& what) const {
    return {code, fmt::format("{}: {}", shown_path(path_), what)};
  }

  Result<void> read_texts() {
    struct Text {
      const char* name;
      std::string* text;
      uint64_t limit;
    };
    const Text texts[] = {
        {"config.json", &folder_.config_json, 16 * kMiB},
        {"generation_config.json", &folder_.generation_config_json, 16 * kMiB},
        {"tokenizer.json", &folder_.tokenizer_json, 256 * kMiB},
        {"tokenizer_config.json", &folder_.tokenizer_config_json, 64 * kMiB},
        {"chat_template.jinja", &folder_.chat_template_jinja, 16 * kMiB},
    };
    for (const Text& entry : texts) {
      auto text = read_text(path_ / entry.name, entry.limit);
      if (!text) return text.error();
      const bool is_json = std::string_view(entry.name).ends_with(".json");
      if (is_json && nests_too_deep(*text)) {
        return Error{ErrorCode::BadFormat,
                     fmt::format("{}: brackets nested deeper than {} are not read",
                                 shown_path(path_ / entry.name), kDeepestNesting)};
      }
      *entry.text = std::move(*text);
    }
    return {};
  }

  // One file without an index.
  Result<void> read_single(const std::vector<std::string>& names) {
    if (names.empty()) return no_weights();
    if (is_one_set(names)) return read_set(names);
    std::string chosen = names.front();
    if (names.size() > 1) {
      if (!std::ranges::binary_search(names, kSingleName)) {
        return error(
            ErrorCode::BadFormat,
            fmt::format("{} .safetensors files and no {} that says which tensor lies where: "
                        "{}",
                        names.size(), kIndexName, shown_names(names)));
      }
      chosen = kSingleName;
    }
    auto file = open_weight_file(path_ / chosen, chosen);
    if (!file) return file.error();
    auto contents = read_safetensors(file->map.bytes(), shown_path(file->path));
    if (!contents) return contents.error();
    if (contents->tensors.empty()) {
      return Error{ErrorCode::BadFormat, fmt::format("{}: no tensors", shown_path(file->path))};
    }
    take_metadata(*contents, contents->tensors);
    folder_.tensors = std::move(contents->tensors);
    folder_.files.push_back(std::move(*file));
    warn_of_strays(names, std::vector<std::string_view>{chosen});
    return {};
  }

  // A file may still speak of a head that lay in it once. used: of its tensors.
  void take_metadata(const SafetensorsContents& file, std::span<const Tensor> used) {
    const bool holds_head =
        std::ranges::any_of(used, [](const Tensor& t) { return is_head_tensor(t.name); });
    for (const auto& [key, value] : file.metadata)
      if (holds_head || !is_head_metadata(key)) folder_.metadata.emplace(key, value);
  }

  static bool is_one_set(const std::vector<std::string>& names) {
    const auto first = PartName::of(names.front());
    return first && std::ranges::all_of(names, [&](const std::string& name) {
             const auto part = PartName::of(name);
             return part && part->same_set(*first);
           });
  }

  // Shards without an index: NAME-00001-of-0000N and so on, all of them and nothing else.
  Result<void> read_set(const std::vector<std::string>& names) {
    const PartName set = *PartName::of(names.front());
    std::vector<std::string> missing;
    for (int i = 1; i <= set.count; ++i) {
      const std::string part = set.with(i).text();
      if (!std::ranges::binary_search(names, part)) missing.push_back(quoted_name(part));
    }
    if (!missing.empty()) {
      return error(ErrorCode::NotFound,
                   fmt::format("{} of {} shards are missing: {}; fetch them again", missing.size(),
                               set.count, listed(missing, kNamesInAnError)));
    }
    std::map<std::string, std::string> places;  // the file of each tensor
    for (const std::string& name : names) {
      auto file = open_weight_file(path_ / name, name);
      if (!file) return file.error();
      auto contents = read_safetensors(file->map.bytes(), shown_path(file->path));
      if (!contents) return contents.error();
      take_metadata(*contents, contents->tensors);
      for (Tensor& tensor : contents->tensors) {
        const auto [place, is_new] = places.emplace(tensor.name, name);
        if (!is_new) {
          return error(ErrorCode::BadFormat,
                       fmt::format("tensor {} lies in {} and in {}, and there is no {} that says "
                                   "which is meant",
                                   quoted_name(tensor.name), quoted_name(place->second),
                                   quoted_name(name), kIndexName));
        }
        folder_.tensors.push_back(std::move(tensor));
      }
      folder_.files.push_back(std::move(*file));
    }
    if (folder_.tensors.empty()) return error(ErrorCode::BadFormat, "no tensors in any shard");
    return {};
  }

  Result<void> no_weights() const {
    auto ggufs = files_ending(path_, ".gguf");
    if (ggufs && !ggufs->empty()) {
      return error(ErrorCode::BadUsage,
                   fmt::format("a folder with .gguf files; name the file itself: {}",
                               ggufs->size() == 1 ? shown_path(path_ / ggufs->front())
                                                  : shown_names(*ggufs)));
    }
    return error(ErrorCode::NotFound,
                 "no .safetensors and no .gguf file in this folder; a model is a .gguf file or a "
                 "folder with safetensors weights");
  }

  // The shards that the index names.
  Result<void> read_shards(const std::vector<std::string>& names) {
    const fs::path index_path = path_ / kIndexName;
    auto text = read_text(index_path, kLargestIndex);
    if (!text) return text.error();
    auto index = read_safetensors_index(*text, shown_path(index_path));
    if (!index) return index.error();
    text->clear();

    std::map<std::string_view, size_t> shards;  // tensors that the index expects in each
    for (const IndexedTensor& entry : *index) ++shards[entry.file];
    if (auto step = check_shards(shards); !step) return step.error();

    std::vector<bool> found(index->size());
    std::vector<std::string_view> used;
    for (const auto& [file, _] : shards) {
      if (auto step = read_shard(file, *index, found); !step) return step.error();
      used.push_back(file);
    }
    if (auto step = check_found(*index, found); !step) return step.error();
    warn_of_strays(names, used);
    return {};
  }

  // All shards there, and inside: told together, before any is opened.
  Result<void> check_shards(const std::map<std::string_view, size_t>& shards) const {
    std::error_code failure;
    const fs::path root = fs::canonical(path_, failure);
    if (failure) return error(ErrorCode::Io, failure.message());
    const bool in_hub_cache = root.parent_path().filename() == "snapshots";
    const fs::path blobs = root.parent_path().parent_path() / "blobs";

    std::vector<std::string> missing;
    for (const auto& [file, n_tensors] : shards) {
      const fs::path target = fs::canonical(path_ / file, failure);
      if (failure || !is_file(target)) {
        missing.push_back(fmt::format("{} ({} tensors)", quoted_name(file), n_tensors));
      } else if (!lies_in(target, root) && !(in_hub_cache && lies_in(target, blobs))) {
        return outside(file);
      }
    }
    if (missing.empty()) return {};
    const bool has_single = !shards.contains(kSingleName) && is_file(path_ / kSingleName);
    return error(ErrorCode::NotFound,
                 fmt::format("{} of {} files that {} names are missing: {}{}", missing.size(),
                             shards.size(), kIndexName, listed(missing, kNamesInAnError),
                             has_single ? "; to use model.safetensors alone, move the index away"
                                        : "; fetch them again"));
  }

  Error outside(std::string_view file) const {
    return error(
        ErrorCode::BadFormat,
        fmt::format("{} names {}, a link that leaves the folder; put the file itself there",
                    kIndexName, quoted_name(file)));
  }

  // Takes the tensors that the index (sorted by tensor name) places in this shard.
  Result<void> read_shard(std::string_view name, const std::vector<IndexedTensor>& index,
                          std::vector<bool>& found) {
    auto file = open_weight_file(path_ / name, std::string(name));
    if (!file) return file.error();
    auto contents = read_safetensors(file->map.bytes(), shown_path(file->path));
    if (!contents) return contents.error();
    std::vector<std::string> unnamed;
    const size_t n_before = folder_.tensors.size();
    for (Tensor& tensor : contents->tensors) {
      const auto entry = std::ranges::lower_bound(index, tensor.name, {}, &IndexedTensor::tensor);
      if (entry != index.end() && entry->tensor == tensor.name && entry->file == file->name) {
        found[static_cast<size_t>(entry - index.begin())] = true;
        folder_.tensors.push_back(std::move(tensor));
      } else {
        unnamed.push_back(quoted_name(tensor.name));
      }
    }
    take_metadata(*contents, std::span(folder_.tensors).subspan(n_before));
    if (!unnamed.empty()) {
      folder_.warnings.push_back(fmt::format(
          "{}: {} does not place these tensors of the file there, they are not used: {}",
          shown_path(file->path), kIndexName, listed(unnamed, 3)));
    }
    folder_.files.push_back(std::move(*file));
    return {};
  }

  Result<void> check_found(const std::vector<IndexedTensor>& index,
                           const std::vector<bool>& found) const {
    std::vector<std::string> missing;
    for (size_t i = 0; i < index.size(); ++i) {
      if (found[i]) continue;
      missing.push_back(
          fmt::format("{} in {}", quoted_name(index[i].tensor), quoted_name(index[i].file)));
    }
    if (missing.empty()) return {};
    return error(ErrorCode::BadFormat,
                 fmt::format("{} tensors are not in the file that {} names for them: {}",
                             missing.size(), kIndexName, listed(missing, kNamesInAnError)));
  }

  void warn_of_strays(const std::vector<std::string>& names,
                      const std::vector<std::string_view>& used) {
    std::vector<std::string> strays;
    for (const std::string& name : names) {
      if (std::ranges::find(used, std::string_view(name)) == used.end()) strays.push_back(name);
    }
    if (strays.empty()) return;
    folder_.warnings.push_back(
        fmt::format("{}: not used: {}", shown_path(path_), shown_names(strays)));
  }

  static std::string shown_names(const std::vector<std::string>& names) {
    std::vector<std::string> shown;
    shown.reserve(names.size());
    for (const std::string& name : names) shown.push_back(quoted_name(name));
    return listed(shown, kNamesInAnError);
  }

  const fs::path& path_;
  Folder folder_;
};

}  // namespace

Result<Folder> open_folder(const fs::path& path, Unfinished unfinished) {
  if (unfinished == Unfinished::Refused)
    if (auto whole = refuse_unfinished(path); !whole) return whole.error();
  return FolderReader(path).read();
}

const WeightFile& file_of(const Folder& folder, const Tensor& tensor) {
  const auto holds = [&](const WeightFile& file) {
    const auto bytes = file.map.bytes();
    return std::greater_equal<>()(tensor.data.data(), bytes.data()) &&
           std::less_equal<>()(tensor.data.data() + tensor.data.size(),
                               bytes.data() + bytes.size());
  };
  return *std::ranges::find_if(folder.files, holds);
}

}  // namespace paceline
