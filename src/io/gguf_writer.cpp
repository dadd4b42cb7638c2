#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "io/gguf_format.h"
#include "io/shown.h"
#include "io/write_rows.h"
#include "io/writer.h"

namespace paceline {
namespace {

using gguf::ValueType;

constexpr uint32_t kVersion = 3;
constexpr int64_t kAlignment = gguf::kDefaultAlignment;

int64_t padding_behind(int64_t offset) { return (kAlignment - offset % kAlignment) % kAlignment; }

template <class T>
constexpr ValueType value_type() {
  if constexpr (std::is_same_v<T, uint8_t>) return ValueType::U8;
  if constexpr (std::is_same_v<T, int8_t>) return ValueType::I8;
  if constexpr (std::is_same_v<T, uint16_t>) return ValueType::U16;
  if constexpr (std::is_same_v<T, int16_t>) return ValueType::I16;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::U32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::I32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::U64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::I64;
  if constexpr (std::is_same_v<T, float>) return ValueType::F32;
  if constexpr (std::is_same_v<T, double>) return ValueType::F64;
  if constexpr (std::is_same_v<T, bool>) return ValueType::Bool;
  return ValueType::String;
}

// The head of the file as it grows.
class Head {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void put(ValueType type) { put(static_cast<uint32_t>(type)); }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    bytes_ += text;
  }
  void put_magic() { bytes_ += "GGUF"; }

  template <class T>
  void put_value(const T& value) {
    put(value_type<T>());
    put(value);
  }
  template <class T>
  void put_value(const std::vector<T>& values) {
    put(ValueType::Array);
    put(value_type<T>());
    put(uint64_t{values.size()});
    for (const T& value : values) put(value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

Error cannot(const std::string& what, std::string_view name, const std::string& why) {
  return {ErrorCode::BadUsage,
          fmt::format("cannot write {} {} to a GGUF file: {}", what, quoted_name(name), why)};
}

Result<void> check_names(std::span<const GgufKeyValue> metadata,
                         std::span<const TensorSpec> tensors) {
  std::vector<std::string_view> keys;
  for (const GgufKeyValue& entry : metadata) {
    const std::string& key = entry.key;
    if (key.empty() || key.size() > gguf::kLongestKey || key.find('\0') != std::string::npos) {
      return cannot("key", key, "a key has 1 to 65535 bytes, none of them zero");
    }
    if (key == "general.alignment") return cannot("key", key, "the writer sets the alignment");
    keys.push_back(key);
  }
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end()) return cannot("key", *twice, "it is given twice");
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > gguf::kLongestTensorName) {
      return cannot("tensor", tensor.name,
                    fmt::format("a name has 1 to {} bytes", gguf::kLongestTensorName));
    }
    if (tensor.shape.size() > gguf::kMaxDims) {
      return cannot("tensor", tensor.name, fmt::format("more than {} dimensions", gguf::kMaxDims));
    }
  }
  return {};
}

Head head_of(std::span<const GgufKeyValue> metadata, std::span<const TensorSpec> tensors) {
  Head head;
  head.put_magic();
  head.put(kVersion);
  head.put(uint64_t{tensors.size()});
  head.put(uint64_t{metadata.size()});
  for (const GgufKeyValue& entry : metadata) {
    head.put(entry.key);
    std::visit([&](const auto& value) { head.put_value(value); }, entry.value);
  }
  int64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    head.put(tensor.name);
    head.put(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) head.put(tensor.shape[i]);  // innermost first
    head.put(gguf::type_id(tensor.type));
    head.put(static_cast<uint64_t>(offset));
    offset += tensor.rows() * tensor.row_bytes();
    offset += padding_behind(offset);
  }
  return head;
}

}  // namespace

Result<void> write_gguf(const std::filesystem::path& path, std::span<const GgufKeyValue> metadata,
                        std::span<const TensorSpec> tensors, const FillRows& fill) {
  if (auto names = check_names(metadata, tensors); !names) return names;
  if (auto specs = check_specs(tensors); !specs) return specs;

  const Head head = head_of(metadata, tensors);
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto step = file->write(std::as_bytes(std::span(head.bytes()))); !step) return step;
  const auto head_bytes = static_cast<int64_t>(head.bytes().size());
  if (auto step = write_padding(*file, padding_behind(head_bytes)); !step) return step;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (auto step = write_rows(*file, tensors, i, fill); !step) return step;
    const int64_t bytes = tensors[i].rows() * tensors[i].row_bytes();
    if (auto step = write_padding(*file, padding_behind(bytes)); !step) return step;
  }
  return file->commit();
}

}  // namespace paceline
