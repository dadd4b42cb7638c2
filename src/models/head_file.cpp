#include "models/head_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/safetensors_reader.h"
#include "io/shown.h"
#include "io/weight_file.h"
#include "io/writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Entries = std::map<std::string, std::string>;

constexpr const char* kVersion = "1";
constexpr int kMostDepths = 64;
constexpr size_t kNamesInAnError = 40;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return value;
}

// Reads the metadata of one head and collects what is wrong with them.
class ConfigParser {
 public:
  explicit ConfigParser(const Entries& metadata) : metadata_(metadata) {}

  HeadConfig parse() {
    HeadConfig config;
    if (const auto* text = find("paceline.tap")) {
      const auto tap = tap_named(*text);
      tap ? void(config.tap = *tap) : fault("paceline.tap", "after or before", *text);
    }
    if (const auto* text = find("paceline.tap_type")) {
      const auto type = tap_type_named(*text);
      type ? void(config.tap_type = *type) : fault("paceline.tap_type", "bf16 or f32", *text);
    }
    number("paceline.modules", kMostHeadModules, &config.modules);
    number("paceline.depths", kMostDepths, &config.depths);
    if (const auto* text = find("paceline.draft_vocabulary")) {
      vocabulary(*text, &config.draft_vocabulary);
    }
    for (const auto& [key, to] : {std::pair{"paceline.family", &config.family},
                                  std::pair{"paceline.trunk_sha256", &config.trunk_sha256},
                                  std::pair{"paceline.numerics", &config.numerics},
                                  std::pair{"paceline.data_sha256", &config.data_sha256},
                                  std::pair{"paceline.trainer", &config.trainer}}) {
      if (const auto* text = find(key)) *to = *text;
    }
    return config;
  }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  const std::string* find(const char* key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? nullptr : &found->second;
  }
  void fault(const char* key, const std::string& wanted, std::string_view found) {
    faults_.push_back(fmt::format("{} wants {}, found {}", key, wanted, quoted_name(found)));
  }
  void number(const char* key, int most, int* to) {
    const auto* text = find(key);
    if (text == nullptr) return;
    const auto value = whole_number(*text);
    if (value && *value >= 1 && *value <= most) {
      *to = static_cast<int>(*value);
    } else {
      fault(key, fmt::format("a whole number from 1 to {}", most), *text);
    }
  }
  void vocabulary(std::string_view text, std::vector<TokenId>* ids) {
    const char* key = "paceline.draft_vocabulary";
    for (size_t begin = 0; begin <= text.size();) {
      const size_t comma = std::min(text.find(',', begin), text.size());
      const std::string_view word = text.substr(begin, comma - begin);
      const auto id = whole_number(word);
      if (!id || *id < 0 || *id > 0x7fffffff || (!ids->empty() && *id <= ids->back())) {
        return fault(key, "ids in ascending order, separated by commas", word);
      }
      ids->push_back(static_cast<TokenId>(*id));
      begin = comma + 1;
    }
  }

  const Entries& metadata_;
  std::vector<std::string> faults_;
};

Result<HeadConfig> parse_config(const Entries& metadata, const std::string& place) {
  ConfigParser parser(metadata);
  HeadConfig config = parser.parse();
  if (parser.faults().empty()) return config;
  return Error{ErrorCode::BadFormat,
               fmt::format("{}: {}", place, fmt::join(parser.faults(), "; "))};
}

Error not_finite(const std::string& place, const std::string& name, size_t at) {
  return {ErrorCode::BadFormat,
          fmt::format("{}: {} holds a value that is not finite, at element {}", place, name, at)};
}

Result<void> check_finite(const HeadTensors& head, const std::string& place) {
  for (const auto& [name, tensor] : head.tensors) {
    const auto bad = std::ranges::find_if_not(tensor.values, [](float x) {
      return std::isfinite(x) && std::isfinite(to_f32(to_bf16(x)));
    });
    if (bad != tensor.values.end()) {
      return not_finite(place, name, static_cast<size_t>(bad - tensor.values.begin()));
    }
  }
  return {};
}

Result<HeadTensors> with_values(HeadConfig config, std::span<const Tensor> tensors,
                                const std::string& place) {
  HeadTensors head{.config = std::move(config), .tensors = {}};
  for (const Tensor& tensor : tensors) {
    HeadTensor& to = head.tensors[tensor.name];
    to.shape = tensor.shape;
    to.values.resize(static_cast<size_t>(tensor.elements()));
    dequantize(tensor, 0, to.values);
  }
  if (auto finite = check_finite(head, place); !finite) return finite.error();
  return head;
}

struct OpenHead {
  WeightFile file;
  SafetensorsContents contents;
  HeadConfig config;
};

Result<OpenHead> open_head(const fs::path& path) {
  auto file = open_weight_file(path, path.filename().string());
  if (!file) return file.error();
  const std::string place = shown_path(path);
  auto contents = read_safetensors(file->map.bytes(), place);
  if (!contents) return contents.error();
  const Entries metadata(contents->metadata.begin(), contents->metadata.end());
  const auto version = metadata.find("paceline.head");
  if (version == metadata.end()) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{}: no draft head; its metadata have no paceline.head", place)};
  }
  if (version->second != kVersion) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("{}: a draft head of version {}, and this program reads version {}",
                             place, quoted_name(version->second), kVersion)};
  }
  auto config = parse_config(metadata, place);
  if (!config) return config.error();
  return OpenHead{std::move(*file), std::move(*contents), std::move(*config)};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// What is wrong with the tensors that were found, a sentence each kind of fault.
std::vector<std::string> shape_faults(std::span<const HeadShape> found,
                                      std::span<const HeadShape> wanted) {
  std::vector<std::string> missing, misshapen, unused, faults;
  for (const HeadShape& want : wanted) {
    const auto there = std::ranges::find(found, want.name, &HeadShape::name);
    if (there == found.end()) {
      missing.push_back(want.name);
    } else if (there->shape != want.shape) {
      misshapen.push_back(fmt::format("{} is {}, wanted {}", want.name, shape_text(there->shape),
                                      shape_text(want.shape)));
    }
  }
  for (const HeadShape& tensor : found)
    if (std::ranges::find(wanted, tensor.name, &HeadShape::name) == wanted.end())
      unused.push_back(tensor.name);
  const auto tell = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    faults.push_back(fmt::format("{} {}: {}", names.size(), what, listed(names, kNamesInAnError)));
  };
  tell("tensors are missing", missing);
  tell("tensors have other shapes", misshapen);
  tell("tensors are not used", unused);
  return faults;
}

Result<void> does_not_fit(const std::vector<std::string>& faults) {
  if (faults.empty()) return {};
  return Error{ErrorCode::BadFormat,
               fmt::format("the draft head does not fit the model: {}", fmt::join(faults, "; "))};
}

}  // namespace

std::string head_prefix(int module) {
  return module == 0 ? "mtp." : fmt::format("mtp.modules.{}.", module);
}

Result<HeadTensors> read_head(const fs::path& file) {
  auto open = open_head(file);
  if (!open) return open.error();
  return with_values(std::move(open->config), open->contents.tensors, shown_path(file));
}

Result<HeadConfig> read_head_config(const fs::path& file) {
  auto open = open_head(file);
  if (!open) return open.error();
  return std::move(open->config);
}

Result<std::vector<HeadShape>> read_head_shapes(const fs::path& file) {
  auto open = open_head(file);
  if (!open) return open.error();
  std::vector<HeadShape> shapes;
  for (const Tensor& tensor : open->contents.tensors) shapes.push_back({tensor.name, tensor.shape});
  return shapes;
}

Result<HeadConfig> head_config_of(const Checkpoint& checkpoint) {
  const std::string place = shown_path(checkpoint.path());
  bool any = false;
  int modules = 1;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (!is_head_tensor(tensor.name)) continue;
    any = true;
    for (int k = 1; k < kMostHeadModules; ++k) {
      if (tensor.name.starts_with(head_prefix(k))) modules = std::max(modules, k + 1);
    }
  }
  if (!any) return Error{ErrorCode::NotFound, fmt::format("{}: no mtp.* tensors", place)};
  auto config = parse_config(checkpoint.file_metadata(), place);
  if (!config) return config.error();
  if (!checkpoint.file_metadata().contains("paceline.modules")) config->modules = modules;
  return config;
}

Result<HeadTensors> read_head(const Checkpoint& checkpoint) {
  auto config = head_config_of(checkpoint);
  if (!config) return config.error();
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : checkpoint.tensors())
    if (is_head_tensor(tensor.name)) tensors.push_back(tensor);
  return with_values(*std::move(config), tensors, shown_path(checkpoint.path()));
}

std::map<std::string, std::string> head_metadata(const HeadConfig& config) {
  Entries metadata = {{"paceline.head", kVersion},
                      {"paceline.tap", to_string(config.tap)},
                      {"paceline.tap_type", to_string(config.tap_type)},
                      {"paceline.modules", std::to_string(config.modules)},
                      {"paceline.depths", std::to_string(config.depths)}};
  for (const auto& [key, text] : {std::pair{"paceline.family", &config.family},
                                  std::pair{"paceline.trunk_sha256", &config.trunk_sha256},
                                  std::pair{"paceline.numerics", &config.numerics},
                                  std::pair{"paceline.data_sha256", &config.data_sha256},
                                  std::pair{"paceline.trainer", &config.trainer}}) {
    if (!text->empty()) metadata[key] = *text;
  }
  if (!config.draft_vocabulary.empty()) {
    metadata["paceline.draft_vocabulary"] =
        fmt::format("{}", fmt::join(config.draft_vocabulary, ","));
  }
  return metadata;
}

Result<void> write_head(const fs::path& file, const HeadTensors& head) {
  if (auto finite = check_finite(head, shown_path(file)); !finite) return finite.error();
  std::vector<TensorSpec> specs;
  std::vector<const HeadTensor*> tensors;
  for (const auto& [name, tensor] : head.tensors) {
    specs.push_back({.name = name, .type = DType::BF16, .shape = tensor.shape});
    tensors.push_back(&tensor);
  }
  return write_safetensors(
      file, specs, head_metadata(head.config),
      [&](size_t index, int64_t first_row, std::span<std::byte> rows) -> Result<void> {
        const TensorSpec& spec = specs[index];
        const float* from =
            tensors[index]->values.data() + first_row * spec.row_bytes() / int64_t{sizeof(bf16)};
        for (size_t i = 0; i < rows.size() / sizeof(bf16); ++i) {
          const bf16 rounded = to_bf16(from[i]);
          std::memcpy(rows.data() + i * sizeof(bf16), &rounded, sizeof(bf16));
        }
        return {};
      });
}

Result<void> check_head_shapes(std::span<const HeadShape> found,
                               std::span<const HeadShape> wanted) {
  return does_not_fit(shape_faults(found, wanted));
}

Result<void> check_head(const HeadTensors& head, std::span<const HeadShape> shapes,
                        int vocab_size) {
  std::vector<HeadShape> found;
  for (const auto& [name, tensor] : head.tensors) found.push_back({name, tensor.shape});
  std::vector<std::string> faults = shape_faults(found, shapes);
  const auto& ids = head.config.draft_vocabulary;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size || (i > 0 && ids[i] <= ids[i - 1])) {
      faults.push_back(fmt::format("its draft vocabulary wants ascending ids below {}, found {}",
                                   vocab_size, ids[i]));
      break;
    }
  }
  if (auto fits = does_not_fit(faults); !fits) return fits.error();
  return check_finite(head, "the draft head");
}

}  // namespace paceline
