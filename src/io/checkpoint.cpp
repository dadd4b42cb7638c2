#include "io/checkpoint.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "io/gguf_reader.h"
#include "io/shown.h"

namespace paceline {
namespace fs = std::filesystem;

struct Checkpoint::State {
  Kind kind = Kind::Gguf;
  fs::path path;
  std::vector<MappedFile> files;  // what tensors and metadata point into
  std::vector<Tensor> tensors;
  std::vector<size_t> by_name;  // indices of tensors, sorted by name
  GgufMetadata metadata;
  std::string config_json;
  std::string generation_config_json;
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string chat_template_jinja;
  std::vector<std::string> warnings;
};

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {
  State& s = *state_;
  s.by_name.resize(s.tensors.size());
  std::iota(s.by_name.begin(), s.by_name.end(), size_t{0});
  std::ranges::sort(s.by_name, {}, [&](size_t i) -> std::string_view { return s.tensors[i].name; });
}

Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

Result<Checkpoint> Checkpoint::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    return Error{ErrorCode::NotFound, shown_path(path) + ": no such file or folder"};
  }
  if (failure) return Error{ErrorCode::Io, shown_path(path) + ": " + failure.message()};
  if (!fs::is_regular_file(status)) {
    return Error{ErrorCode::BadUsage, shown_path(path) + ": not a .gguf file and not a folder"};
  }
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto contents = read_gguf(file->bytes(), shown_path(path));
  if (!contents) return contents.error();
  state->files.push_back(std::move(*file));
  state->tensors = std::move(contents->tensors);
  state->metadata = std::move(contents->metadata);
  state->warnings = std::move(contents->warnings);
  return Checkpoint(std::move(state));
}

Checkpoint::Kind Checkpoint::kind() const { return state_->kind; }
const fs::path& Checkpoint::path() const { return state_->path; }
std::span<const Tensor> Checkpoint::tensors() const { return state_->tensors; }

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto name_of = [&](size_t i) -> std::string_view { return state_->tensors[i].name; };
  const auto found = std::ranges::lower_bound(state_->by_name, name, {}, name_of);
  if (found == state_->by_name.end() || name_of(*found) != name) return nullptr;
  return &state_->tensors[*found];
}

const Metadata* Checkpoint::metadata() const {
  return state_->kind == Kind::Gguf ? &state_->metadata : nullptr;
}

const std::string& Checkpoint::config_json() const { return state_->config_json; }
const std::string& Checkpoint::generation_config_json() const {
  return state_->generation_config_json;
}
const std::string& Checkpoint::tokenizer_json() const { return state_->tokenizer_json; }
const std::string& Checkpoint::tokenizer_config_json() const {
  return state_->tokenizer_config_json;
}
const std::string& Checkpoint::chat_template_jinja() const { return state_->chat_template_jinja; }
std::span<const std::string> Checkpoint::warnings() const { return state_->warnings; }

Result<std::string> Checkpoint::sha256() const {
  return paceline::sha256(state_->files.front().bytes());
}

}  // namespace paceline
