// Metadata of a GGUF file: views into the mapped bytes, converted when they are asked for.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "io/gguf_format.h"

namespace paceline {

// One key with its value as it lies in the file, already checked against the file's end.
struct GgufEntry {
  std::string_view key;
  bool is_array = false;
  gguf::ValueType type = gguf::ValueType::U8;  // of the value, or of each array element
  uint64_t count = 1;                          // elements of an array
  std::span<const std::byte> bytes;            // the value or the elements, lengths of strings too
};

class GgufMetadata : public Metadata {
 public:
  GgufMetadata() = default;
  // Entries sorted by key, no key twice, their bytes outliving this object.
  explicit GgufMetadata(std::vector<GgufEntry> sorted_entries);

  bool has(std::string_view key) const override;
  std::optional<int64_t> integer(std::string_view key) const override;
  std::optional<double> number(std::string_view key) const override;
  std::optional<bool> boolean(std::string_view key) const override;
  std::optional<std::string_view> text(std::string_view key) const override;
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const override;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const override;
  std::optional<std::vector<double>> numbers(std::string_view key) const override;

  // Null when there is no such key.
  const GgufEntry* find(std::string_view key) const;

 private:
  std::vector<GgufEntry> entries_;
};

}  // namespace paceline
