#include "io/gguf_metadata.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace paceline {
namespace {

using gguf::ValueType;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::optional<int64_t> integer_at(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::U8:
    case ValueType::Bool:
      return load<uint8_t>(at);
    case ValueType::I8:
      return load<int8_t>(at);
    case ValueType::U16:
      return load<uint16_t>(at);
    case ValueType::I16:
      return load<int16_t>(at);
    case ValueType::U32:
      return load<uint32_t>(at);
    case ValueType::I32:
      return load<int32_t>(at);
    case ValueType::I64:
      return load<int64_t>(at);
    case ValueType::U64: {
      const auto value = load<uint64_t>(at);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(ValueType type, const std::byte* at) {
  constexpr int64_t kExact = int64_t{1} << 53;  // every integer up to here is a double
  if (type == ValueType::F32) return load<float>(at);
  if (type == ValueType::F64) return load<double>(at);
  if (type == ValueType::Bool) return std::nullopt;
  const auto value = integer_at(type, at);
  if (!value || *value > kExact || *value < -kExact) return std::nullopt;
  return static_cast<double>(*value);
}

std::string_view text_at(const std::byte* at) {
  return {reinterpret_cast<const char*>(at + sizeof(uint64_t)), load<uint64_t>(at)};
}

// All elements of an array through `convert`; none when one of them has no such value.
template <class T, class Convert>
std::optional<std::vector<T>> elements(const GgufEntry* entry, Convert convert) {
  if (entry == nullptr || !entry->is_array) return std::nullopt;
  const int size = gguf::value_bytes(entry->type);
  if (size == 0) return std::nullopt;
  std::vector<T> values;
  values.reserve(entry->count);
  for (uint64_t i = 0; i < entry->count; ++i) {
    const auto value = convert(entry->type, entry->bytes.data() + i * size);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

GgufMetadata::GgufMetadata(std::vector<GgufEntry> sorted_entries)
    : entries_(std::move(sorted_entries)) {}

const GgufEntry* GgufMetadata::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(entries_, key, {}, &GgufEntry::key);
  return found != entries_.end() && found->key == key ? &*found : nullptr;
}

bool GgufMetadata::has(std::string_view key) const { return find(key) != nullptr; }

std::optional<int64_t> GgufMetadata::integer(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr || entry->is_array) return std::nullopt;
  return integer_at(entry->type, entry->bytes.data());
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr || entry->is_array) return std::nullopt;
  return number_at(entry->type, entry->bytes.data());
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr || entry->is_array || entry->type != ValueType::Bool) return std::nullopt;
  return load<uint8_t>(entry->bytes.data()) != 0;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr || entry->is_array || entry->type != ValueType::String) return std::nullopt;
  return text_at(entry->bytes.data());
}

std::optional<std::vector<std::string_view>> GgufMetadata::texts(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr || !entry->is_array || entry->type != ValueType::String) return std::nullopt;
  std::vector<std::string_view> values;
  values.reserve(entry->count);
  const std::byte* at = entry->bytes.data();
  for (uint64_t i = 0; i < entry->count; ++i) {
    values.push_back(text_at(at));
    at += sizeof(uint64_t) + values.back().size();
  }
  return values;
}

std::optional<std::vector<int64_t>> GgufMetadata::integers(std::string_view key) const {
  return elements<int64_t>(find(key), integer_at);
}

std::optional<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  return elements<double>(find(key), number_at);
}

}  // namespace paceline
