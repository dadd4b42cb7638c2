// Which hidden state of the trunk a draft head reads, and how it is rounded on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

// Before or after the trunk's final norm. A head's own state that it reads at the next depth is
// taken on the same side of the head's norm.
enum class Tap : uint8_t { After, Before };
const char* to_string(Tap tap);  // "after"
std::optional<Tap> tap_named(std::string_view name);

// What a head reads as hidden is rounded to this type first, the trunk's state and its own alike,
// so that serving, dumps and training see the same numbers.
enum class TapType : uint8_t { BF16, F32 };
const char* to_string(TapType type);  // "bf16"
std::optional<TapType> tap_type_named(std::string_view name);

}  // namespace paceline
