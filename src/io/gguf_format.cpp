#include "io/gguf_format.h"

#include <algorithm>
#include <array>
#include <utility>

namespace paceline::gguf {
namespace {

struct NamedType {
  uint32_t id;
  const char* name;
};

// Everything a file may hold, so that what is not read is refused by its name.
constexpr std::array kNamedTypes = {
    NamedType{0, "F32"},     NamedType{1, "F16"},      NamedType{2, "Q4_0"},
    NamedType{3, "Q4_1"},    NamedType{6, "Q5_0"},     NamedType{7, "Q5_1"},
    NamedType{8, "Q8_0"},    NamedType{9, "Q8_1"},     NamedType{10, "Q2_K"},
    NamedType{11, "Q3_K"},   NamedType{12, "Q4_K"},    NamedType{13, "Q5_K"},
    NamedType{14, "Q6_K"},   NamedType{15, "Q8_K"},    NamedType{16, "IQ2_XXS"},
    NamedType{17, "IQ2_XS"}, NamedType{18, "IQ3_XXS"}, NamedType{19, "IQ1_S"},
    NamedType{20, "IQ4_NL"}, NamedType{21, "IQ3_S"},   NamedType{22, "IQ2_S"},
    NamedType{23, "IQ4_XS"}, NamedType{24, "I8"},      NamedType{25, "I16"},
    NamedType{26, "I32"},    NamedType{27, "I64"},     NamedType{28, "F64"},
    NamedType{29, "IQ1_M"},  NamedType{30, "BF16"},    NamedType{34, "TQ1_0"},
    NamedType{35, "TQ2_0"},  NamedType{39, "MXFP4"},   NamedType{40, "NVFP4"},
};

constexpr std::array kReadTypes = {
    std::pair{DType::F32, 0u},   std::pair{DType::F16, 1u},   std::pair{DType::BF16, 30u},
    std::pair{DType::Q8_0, 8u},  std::pair{DType::Q4_0, 2u},  std::pair{DType::Q4_1, 3u},
    std::pair{DType::Q5_0, 6u},  std::pair{DType::Q5_1, 7u},  std::pair{DType::Q2_K, 10u},
    std::pair{DType::Q3_K, 11u}, std::pair{DType::Q4_K, 12u}, std::pair{DType::Q5_K, 13u},
    std::pair{DType::Q6_K, 14u},
};

}  // namespace

int value_bytes(ValueType type) {
  switch (type) {
    case ValueType::U8:
    case ValueType::I8:
    case ValueType::Bool:
      return 1;
    case ValueType::U16:
    case ValueType::I16:
      return 2;
    case ValueType::U32:
    case ValueType::I32:
    case ValueType::F32:
      return 4;
    case ValueType::U64:
    case ValueType::I64:
    case ValueType::F64:
      return 8;
    default:
      return 0;
  }
}

uint32_t type_id(DType type) {
  const auto* found = std::ranges::find(kReadTypes, type, &std::pair<DType, uint32_t>::first);
  return found->second;
}

std::optional<DType> type_of(uint32_t id) {
  const auto* found = std::ranges::find(kReadTypes, id, &std::pair<DType, uint32_t>::second);
  if (found == kReadTypes.end()) return std::nullopt;
  return found->first;
}

std::string type_name(uint32_t id) {
  const auto* found = std::ranges::find(kNamedTypes, id, &NamedType::id);
  return found == kNamedTypes.end() ? "type " + std::to_string(id) : found->name;
}

}  // namespace paceline::gguf
