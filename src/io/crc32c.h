// CRC-32C (Castagnoli), the checksum of dump blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

// Of `bytes` behind others whose checksum is `before`; crc32c("123456789") is 0xe3069283.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace paceline
