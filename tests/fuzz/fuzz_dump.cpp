// Any bytes as a shard of a dump: an error, or streams that can be read whole.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "io/crc32c.h"
#include "io/dump_format.h"

namespace {

void fuzz_shard(std::span<const std::byte> shard) {
  using namespace paceline;
  const auto got = parse_shard(shard, "fuzz");
  if (!got) {
    check(!got.error().message.empty(), "an error without a sentence");
    return;
  }
  int64_t bytes = got->head_bytes + got->dropped_bytes;
  for (const ShardBlock& block : got->blocks) {
    bytes += block.bytes;
    const StreamBlock& stream = block.stream;
    const size_t positions = stream.tokens.size() - 1;
    const size_t row = static_cast<size_t>(got->header.hidden_width * bytes_of(got->header.type));
    check(stream.hiddens.size() == positions * row, "a row for every position");
    int sum = 0;
    for (const std::byte byte : stream.hiddens) sum += std::to_integer<int>(byte);
    for (const TokenId id : stream.tokens) check(id < got->header.vocab_size, "ids are known");
    check(sum >= 0 && stream.meta.n_prompt <= static_cast<int>(positions), "a prompt inside");
  }
  check(bytes == static_cast<int64_t>(shard.size()), "every byte is a block's or dropped");
}

template <class T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

uint32_t crc_of(const std::vector<std::byte>& bytes, size_t begin, size_t end) {
  return paceline::crc32c(std::span(bytes).subspan(begin, end - begin));
}

// Checksums made right, of the head and of the first block, so that inputs get behind them.
void mend(std::vector<std::byte>& bytes) {
  if (bytes.size() < 64) return;
  uint32_t json_bytes = 0;
  std::memcpy(&json_bytes, bytes.data() + 12, sizeof(json_bytes));
  const size_t json_end = 64 + size_t{json_bytes};
  if (json_end > bytes.size()) return;
  put(bytes, 16, crc_of(bytes, 64, json_end));
  put(bytes, 20, crc_of(bytes, 0, 20));
  const size_t block = (json_end + 63) / 64 * 64;
  if (block + 64 > bytes.size()) return;
  uint64_t block_bytes = 0;
  std::memcpy(&block_bytes, bytes.data() + block + 8, sizeof(block_bytes));
  if (block_bytes < 64 || block_bytes > bytes.size() - block) return;
  put(bytes, block + 28, crc_of(bytes, block + 64, block + block_bytes));
  put(bytes, block + 32, crc_of(bytes, block, block + 32));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  fuzz_shard(bytes);
  mend(bytes);
  fuzz_shard(bytes);
  return 0;
}
