#include "io/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "io/gguf_reader.h"
#include "io/part_name.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

constexpr size_t kNamesInAnError = 20;

struct Part {
  WeightFile file;
  GgufContents contents;
};

Result<Part> open_part(const fs::path& path) {
  auto file = open_weight_file(path, path.filename().native());
  if (!file) return file.error();
  auto contents = read_gguf(file->map.bytes(), shown_path(path));
  if (!contents) return contents.error();
  return Part{std::move(*file), std::move(*contents)};
}

// Adds a part's tensors, warnings and file; the views stay good, since the mapping stays.
void append(GgufFile& model, Part part) {
  std::ranges::move(part.contents.tensors, std::back_inserter(model.tensors));
  std::ranges::move(part.contents.warnings, std::back_inserter(model.warnings));
  model.files.push_back(std::move(part.file));
}

Result<void> check_all_there(const fs::path& folder, const PartName& name) {
  std::vector<std::string> missing;
  for (int i = 1; i <= name.count; ++i) {
    const std::string part = name.with(i).text();
    std::error_code ignored;
    if (!fs::is_regular_file(folder / part, ignored)) missing.push_back(quoted_name(part));
  }
  if (missing.empty()) return {};
  return Error{ErrorCode::NotFound,
               fmt::format("{}: {} of the {} parts of this model are missing beside it: {}; fetch "
                           "them again",
                           shown_path(folder / name.text()), missing.size(), name.count,
                           listed(missing, kNamesInAnError))};
}

Result<void> check_tensors(const GgufFile& model, const std::string& place, int64_t wanted) {
  std::vector<std::string_view> names;
  names.reserve(model.tensors.size());
  for (const Tensor& tensor : model.tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: tensor {} stands in two parts of the model",
                                                   place, quoted_name(*twice))};
  }
  if (static_cast<int64_t>(names.size()) != wanted) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: the parts hold {} tensors together, split.tensors.count says {}",
                             place, names.size(), wanted)};
  }
  return {};
}

Result<GgufFile> open_parts(const fs::path& path, const GgufSplit& split) {
  const std::string place = shown_path(path);
  const auto bad = [](const std::string& where, const std::string& what) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: {}", where, what)};
  };
  const auto name = PartName::of(path.filename().native());
  if (!name || name->count != split.count || name->number != split.number + 1) {
    return bad(place, fmt::format("the file says that it is part {} of {}, so its name must end in "
                                  "-{:05}-of-{:05}.gguf, and the other parts lie beside it",
                                  split.number + 1, split.count, split.number + 1, split.count));
  }
  const fs::path folder = path.parent_path();
  if (auto step = check_all_there(folder, *name); !step) return step.error();

  GgufFile model;
  for (int i = 1; i <= name->count; ++i) {
    const fs::path part_path = folder / name->with(i).text();
    auto part = open_part(part_path);
    if (!part) return part.error();
    const auto& own = part->contents.split;
    if (!own || own->number != i - 1 || own->count != split.count ||
        own->n_tensors != split.n_tensors) {
      return bad(shown_path(part_path),
                 own ? fmt::format("the file says that it is part {} of {} with {} tensors in all; "
                                   "part {} of {} with {} was expected beside {}",
                                   own->number + 1, own->count, own->n_tensors, i, split.count,
                                   split.n_tensors, place)
                     : fmt::format("the file does not say that it is a part (no split.count); part "
                                   "{} of {} was expected beside {}",
                                   i, split.count, place));
    }
    if (i == 1) model.metadata = std::move(part->contents.metadata);
    append(model, std::move(*part));
  }
  if (auto step = check_tensors(model, place, split.n_tensors); !step) return step.error();
  return model;
}

}  // namespace

Result<GgufFile> open_gguf(const fs::path& path) {
  auto part = open_part(path);
  if (!part) return part.error();
  if (part->contents.split) return open_parts(path, *part->contents.split);
  GgufFile model;
  model.metadata = std::move(part->contents.metadata);
  append(model, std::move(*part));
  return model;
}

}  // namespace paceline
