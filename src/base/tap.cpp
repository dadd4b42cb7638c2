#include "base/tap.h"

namespace paceline {

const char* to_string(Tap tap) { return tap == Tap::After ? "after" : "before"; }

std::optional<Tap> tap_named(std::string_view name) {
  if (name == "after") return Tap::After;
  if (name == "before") return Tap::Before;
  return {};
}

const char* to_string(TapType type) { return type == TapType::BF16 ? "bf16" : "f32"; }

std::optional<TapType> tap_type_named(std::string_view name) {
  if (name == "bf16") return TapType::BF16;
  if (name == "f32") return TapType::F32;
  return {};
}

}  // namespace paceline
