#include "io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/sha256.h"
#include "io/folder.h"
#include "io/gguf_file.h"
#include "io/shown.h"
#include "io/trunk_digest.h"
#include "io/weight_file.h"

namespace paceline {
namespace fs = std::filesystem;

struct Checkpoint::State {
  Kind kind = Kind::Gguf;
  fs::path path;
  Folder contents;              // of a GGUF model: its files, tensors and warnings
  GgufMetadata metadata;        // views into the first file
  std::vector<size_t> by_name;  // indices of tensors, sorted by name
};

bool is_head_tensor(std::string_view name) { return name.starts_with("mtp."); }
bool is_head_metadata(std::string_view key) { return key.starts_with("paceline."); }

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {
  State& s = *state_;
  s.by_name.resize(s.contents.tensors.size());
  std::iota(s.by_name.begin(), s.by_name.end(), size_t{0});
  std::ranges::sort(s.by_name, {},
                    [&](size_t i) -> std::string_view { return s.contents.tensors[i].name; });
}

Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

Result<Checkpoint> Checkpoint::open(const fs::path& path) {
  if (path.empty()) {
    return Error{ErrorCode::BadUsage, "no model named; a model is a .gguf file or a folder"};
  }
  auto state = std::make_unique<State>();
  state->path = path;
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    auto folder = open_folder(path);
    if (!folder) return folder.error();
    state->kind = Kind::Safetensors;
    state->contents = std::move(*folder);
    return Checkpoint(std::move(state));
  }

  if (path.extension() == ".safetensors" && fs::is_regular_file(path, failure)) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("{}: a model is a .gguf file or a folder; name the folder that holds "
                             "this file and its config.json",
                             shown_path(path))};
  }
  auto gguf = open_gguf(path);
  if (!gguf) return gguf.error();
  state->kind = Kind::Gguf;
  state->metadata = std::move(gguf->metadata);
  state->contents.tensors = std::move(gguf->tensors);
  state->contents.warnings = std::move(gguf->warnings);
  state->contents.files = std::move(gguf->files);
  return Checkpoint(std::move(state));
}

Checkpoint::Kind Checkpoint::kind() const { return state_->kind; }
const fs::path& Checkpoint::path() const { return state_->path; }
std::span<const Tensor> Checkpoint::tensors() const { return state_->contents.tensors; }

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto name_of = [&](size_t i) -> std::string_view {
    return state_->contents.tensors[i].name;
  };
  const auto found = std::ranges::lower_bound(state_->by_name, name, {}, name_of);
  if (found == state_->by_name.end() || name_of(*found) != name) return nullptr;
  return &state_->contents.tensors[*found];
}

const std::map<std::string, std::string>& Checkpoint::file_metadata() const {
  return state_->contents.metadata;
}
const Metadata* Checkpoint::metadata() const {
  return state_->kind == Kind::Gguf ? &state_->metadata : nullptr;
}

void Checkpoint::read_ahead(std::span<const std::byte> data) const {
  for (const WeightFile& file : state_->contents.files) {
    const auto bytes = file.map.bytes();
    const bool inside = std::greater_equal<>()(data.data(), bytes.data()) &&
                        std::less<>()(data.data(), bytes.data() + bytes.size());
    if (inside) return file.map.read_ahead(data);
  }
}

const std::string& Checkpoint::config_json() const { return state_->contents.config_json; }
const std::string& Checkpoint::generation_config_json() const {
  return state_->contents.generation_config_json;
}
const std::string& Checkpoint::tokenizer_json() const { return state_->contents.tokenizer_json; }
const std::string& Checkpoint::tokenizer_config_json() const {
  return state_->contents.tokenizer_config_json;
}
const std::string& Checkpoint::chat_template_jinja() const {
  return state_->contents.chat_template_jinja;
}
std::span<const std::string> Checkpoint::warnings() const { return state_->contents.warnings; }

std::string Checkpoint::trunk_sha256() const {
  if (state_->kind == Kind::Safetensors) return trunk_digest(state_->path, state_->contents);
  const std::vector<WeightFile>& files = state_->contents.files;
  if (files.size() == 1) return cached_sha256(files.front());
  std::vector<std::string> lines;  // as sha256sum prints them
  lines.reserve(files.size());
  for (const WeightFile& file : files)
    lines.push_back(cached_sha256(file) + "  " + file.name + "\n");
  std::ranges::sort(lines);
  const std::string text = fmt::format("{}", fmt::join(lines, ""));
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace paceline
