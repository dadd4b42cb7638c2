// The bytes of a dump's shards (docs/formats.md): a shard head, then one block a stream. Everything
// is little-endian and begins on multiples of 64 bytes, so that rows can be used where a mapped
// file has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/dump.h"
#include "io/dump_writer.h"

namespace paceline {

inline constexpr uint32_t kDumpVersion = 1;
inline constexpr const char* kManifestName = "manifest.jsonl";

std::string shard_name(int index);  // "shard-00003.pldump"
// The shards of a folder in the order of their numbers, as far as they follow each other from 0.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder);

// What a block says of its stream, and where in the block the rest stands.
struct StreamMeta {
  std::string id;
  std::string category;
  bool given_text = false;
  int n_prompt = 0;
  int cycle_start = 0;
  int budget = 0;
  bool ended = false;
  int own_top1 = -1;
  std::string head_sha256;
  std::vector<std::string> sources;
};

struct StreamBlock {
  StreamMeta meta;
  std::span<const TokenId> tokens;
  std::span<const uint32_t> round_words;
  std::span<const std::byte> hiddens;
};

// One block as it stands in a file; a view of the shard's bytes, and the meta data read.
struct ShardBlock {
  int64_t offset = 0;  // in the shard
  int64_t bytes = 0;
  StreamBlock stream;
};

struct ShardContents {
  DumpHeader header;
  std::vector<ShardBlock> blocks;  // whole and undamaged ones
  int64_t head_bytes = 0;          // of the shard's head
  int64_t end = 0;                 // behind the last block that could be walked to
  int64_t dropped_bytes = 0;       // damaged blocks, and what stands behind `end`
};

std::string encode_shard_head(const DumpHeader& header);
// BadFormat where the head is not whole; Unsupported for another version. Blocks never fail: what
// is not whole is dropped. shard: must lie on a multiple of 8 bytes. name: for messages.
Result<ShardContents> parse_shard(std::span<const std::byte> shard, std::string_view name);

// BadUsage for what a block cannot hold: see NewStream.
Result<void> check_stream(const NewStream& stream, const DumpHeader& header);
// The stream's block but for its hiddens, which follow the first part; padding comes last.
struct EncodedBlock {
  std::string front;    // head, meta data, tokens, rounds; a multiple of 64 bytes
  std::string padding;  // zeros behind the hiddens
  int64_t bytes = 0;    // all three together
};
EncodedBlock encode_block(const NewStream& stream);
// The stream's line of the manifest, line end included.
std::string manifest_line(const StreamMeta& meta, int positions, std::string_view shard,
                          int64_t offset, int64_t bytes);

// The first field in which two headers differ, as a sentence's end: "tap 'after', not 'before'";
// the prompts' hash does not count. None where they agree.
std::optional<std::string> header_difference(const DumpHeader& has, const DumpHeader& wanted);

StreamMeta meta_of(const NewStream& stream);
std::vector<uint32_t> encode_rounds(std::span<const DumpRound> rounds);
// Whether the words are whole rounds, in ascending rows below `positions`, sources below
// `n_sources`.
bool rounds_are_whole(std::span<const uint32_t> words, int positions, int n_sources);

}  // namespace paceline
