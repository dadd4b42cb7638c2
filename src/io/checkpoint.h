// A checkpoint on disk, whatever its container: named tensors, mapped, not copied, and what the
// files say about them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace paceline {

// Types of elements that a file may hold and this program can read. Those from Q5_0 on have no
// kernels of their own; io/convert.h says in which type they run.
enum class DType { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K };
const char* to_string(DType type);  // "Q4_1"
int block_length(DType type);       // elements of a block: 1, 32 or 256
int block_bytes(DType type);        // bytes of a block

// One tensor. Quantised blocks run along the last, contiguous dimension.
struct Tensor {
  std::string name;  // as in the file
  DType type = DType::F32;
  std::vector<int64_t> shape;       // outermost first: a matrix is {n_out, n_in}
  std::span<const std::byte> data;  // in the mapped file; not necessarily aligned

  int64_t elements() const;
};

// Whether a tensor is a draft head's, by the `mtp.*` convention, and none of the trunk's; and
// whether a file says it of a head, `paceline.*`.
bool is_head_tensor(std::string_view name);
bool is_head_metadata(std::string_view key);

// Metadata values of a GGUF file, read through conversions that lose nothing: integer() reads every
// integer type and bools as 0 or 1, number() floats and integers that a double holds exactly,
// boolean() and text() only their own type. The singular ones read scalars and the plural ones
// arrays, not each other's; anything that does not fit is none. Views live as long as the
// checkpoint.
class Metadata {
 public:
  virtual ~Metadata() = default;
  virtual bool has(std::string_view key) const = 0;
  virtual std::optional<int64_t> integer(std::string_view key) const = 0;
  virtual std::optional<double> number(std::string_view key) const = 0;
  virtual std::optional<bool> boolean(std::string_view key) const = 0;
  virtual std::optional<std::string_view> text(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::string_view>> texts(std::string_view key) const = 0;
  virtual std::optional<std::vector<int64_t>> integers(std::string_view key) const = 0;
  virtual std::optional<std::vector<double>> numbers(std::string_view key) const = 0;
};

class Checkpoint {
 public:
  enum class Kind { Gguf, Safetensors };

  // A .gguf file, any part of a split one (all are opened), or a folder with safetensors, single or
  // sharded, and config.json.
  // Everything in the headers is checked here, before any of it is used; tensor data are mapped and
  // not touched. The rules are told in io/gguf_reader.h, io/gguf_file.h, io/safetensors_reader.h
  // and io/folder.h.
  static Result<Checkpoint> open(const std::filesystem::path& path);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  Kind kind() const;
  const std::filesystem::path& path() const;
  std::span<const Tensor> tensors() const;
  const Tensor* find(std::string_view name) const;  // null when there is none
  const Metadata* metadata() const;                 // GGUF only, else null
  // `__metadata__` of the safetensors files, of those with one key the first; what is said of a
  // head by those alone that hold some of it. Empty for GGUF.
  const std::map<std::string, std::string>& file_metadata() const;

  // MappedFile::read_ahead for bytes of a tensor.
  void read_ahead(std::span<const std::byte> data) const;

  // Files of a folder, as text; empty where there is no such file, as for a GGUF file. Read at
  // open; refused above 16 MiB (tokenizer_config.json 64 MiB, tokenizer.json 256 MiB).
  const std::string& config_json() const;
  const std::string& generation_config_json() const;
  const std::string& tokenizer_json() const;
  const std::string& tokenizer_config_json() const;
  const std::string& chat_template_jinja() const;

  // Things worth a warning that are no fault: stray files and the like, a sentence each.
  std::span<const std::string> warnings() const;

  // The identity of the trunk, 64 hex digits: SHA-256 of a GGUF file; of a split one that of the
  // sorted lines "digest  name" of its files, each with a newline (sha256sum FILES | LC_ALL=C sort
  // | sha256sum); of a folder that of the trunk's tensors and config.json, the same whatever head
  // lies in it (io/trunk_digest.h). Computed once per state of the files (size, time, inode) and
  // remembered in the user's cache folder (io/weight_file.h).
  std::string trunk_sha256() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Element values in float32, exactly as the reference packages give them: product and sum rounded
// separately. out.size() elements from element `first` on, which must lie on a block border.
void dequantize(const Tensor& tensor, int64_t first, std::span<float> out);

}  // namespace paceline
