// Numbers of the GGUF container that reader and writer share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/checkpoint.h"

namespace paceline::gguf {

inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr int kMaxDims = 4;
inline constexpr size_t kLongestTensorName = 63;
inline constexpr size_t kLongestKey = 65535;
inline constexpr int kMostParts = 65535;  // split.count is a u16

// Types of metadata values, numbered as in the file.
enum class ValueType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

// Bytes of a value; 0 for String and Array, whose size stands in the file, and for unknown types.
int value_bytes(ValueType type);

// Tensor types, numbered as in the file.
uint32_t type_id(DType type);
std::optional<DType> type_of(uint32_t id);  // none for a type that is not read
std::string type_name(uint32_t id);         // "Q4_K"; "type 99" where it is not known by name

}  // namespace paceline::gguf
