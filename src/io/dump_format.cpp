#include "io/dump_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "io/crc32c.h"
#include "io/json_parse.h"
#include "io/shown.h"
#include "io/utf8.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "rows are used as they lie in the file");

constexpr size_t kAlignment = 64;
constexpr std::array<char, 8> kShardMagic = {'P', 'L', 'D', 'U', 'M', 'P', '\r', '\n'};
constexpr std::array<char, 8> kBlockMagic = {'P', 'L', 'S', 'T', 'R', 'E', 'A', 'M'};
constexpr uint32_t kMostJson = uint32_t{1} << 20;  // bytes; ours have some hundred

// 64 bytes, as they stand in the file.
struct ShardHead {
  std::array<char, 8> magic = kShardMagic;
  uint32_t version = kDumpVersion;
  uint32_t json_bytes = 0;
  uint32_t json_crc = 0;
  uint32_t head_crc = 0;  // of the 20 bytes before it
  std::array<uint8_t, 40> zeros = {};
};
static_assert(sizeof(ShardHead) == kAlignment);

struct BlockHead {
  std::array<char, 8> magic = kBlockMagic;
  uint64_t bytes = 0;  // of the whole block, this head included
  uint32_t json_bytes = 0;
  uint32_t n_tokens = 0;
  uint32_t n_round_words = 0;
  uint32_t payload_crc = 0;  // of everything behind this head
  uint32_t head_crc = 0;     // of the 32 bytes before it
  std::array<uint8_t, 28> zeros = {};
};
static_assert(sizeof(BlockHead) == kAlignment);

constexpr uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

template <class T>
std::span<const std::byte> raw(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class Head>
uint32_t head_crc(const Head& head) {
  return crc32c(raw(head).first(offsetof(Head, head_crc)));
}

void append(std::string& to, std::span<const std::byte> bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Behind the head: the JSON padded to 4 bytes, tokens, rounds, padding to 64, hiddens, padding.
uint64_t front_bytes(const BlockHead& head) {
  const uint64_t words = uint64_t{head.n_tokens} + head.n_round_words;
  return round_up(sizeof(BlockHead) + round_up(head.json_bytes, 4) + 4 * words, kAlignment);
}

uint64_t hidden_bytes(const BlockHead& head, const DumpHeader& header) {
  return (uint64_t{head.n_tokens} - 1) * static_cast<uint64_t>(header.hidden_width) *
         static_cast<uint64_t>(bytes_of(header.type));
}

Json header_json(const DumpHeader& header) {
  return Json{{"hidden_width", header.hidden_width},
              {"dtype", to_string(header.type)},
              {"tap", to_string(header.tap)},
              {"family", header.family},
              {"vocab_size", header.vocab_size},
              {"model_sha256", header.model_sha256},
              {"numerics", header.numerics},
              {"weights", header.weights},
              {"cache", header.cache},
              {"seed", header.seed},
              {"settings", header.settings},
              {"prompts_sha256", header.prompts_sha256}};
}

// Fields of an object; those of the wrong kind spoil the whole.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  bool good() const { return good_; }

  std::string text(const char* key) {
    const auto found = find(key);
    if (found == json_.end() || !found->is_string()) return fail<std::string>();
    return found->get<std::string>();
  }
  int integer(const char* key, int lowest) {
    const auto found = find(key);
    if (found == json_.end() || !found->is_number_integer()) return fail<int>();
    const auto value = found->get<int64_t>();
    if (value < lowest || value > std::numeric_limits<int>::max()) return fail<int>();
    return static_cast<int>(value);
  }
  uint64_t unsigned_integer(const char* key) {
    const auto found = find(key);
    if (found == json_.end() || !found->is_number_unsigned()) return fail<uint64_t>();
    return found->get<uint64_t>();
  }
  bool boolean(const char* key) {
    const auto found = find(key);
    if (found == json_.end() || !found->is_boolean()) return fail<bool>();
    return found->get<bool>();
  }
  std::vector<std::string> texts(const char* key) {
    const auto found = find(key);
    if (found == json_.end() || !found->is_array()) return fail<std::vector<std::string>>();
    std::vector<std::string> list;
    for (const Json& entry : *found) {
      if (!entry.is_string()) return fail<std::vector<std::string>>();
      list.push_back(entry.get<std::string>());
    }
    return list;
  }

 private:
  Json::const_iterator find(const char* key) const {
    return json_.is_object() ? json_.find(key) : json_.end();
  }
  template <class T>
  T fail() {
    good_ = false;
    return {};
  }

  const Json& json_;
  bool good_ = true;
};

std::optional<DumpHeader> read_header(std::string_view text) {
  const Json json = parse_json<Json>(text);
  Fields fields(json);
  DumpHeader header;
  header.hidden_width = fields.integer("hidden_width", 1);
  const auto type = tap_type_named(fields.text("dtype"));
  const auto tap = tap_named(fields.text("tap"));
  header.family = fields.text("family");
  header.vocab_size = fields.integer("vocab_size", 1);
  header.model_sha256 = fields.text("model_sha256");
  header.numerics = fields.text("numerics");
  header.weights = fields.text("weights");
  header.cache = fields.text("cache");
  header.seed = fields.unsigned_integer("seed");
  header.settings = fields.text("settings");
  header.prompts_sha256 = fields.text("prompts_sha256");
  if (!fields.good() || !type || !tap) return std::nullopt;
  header.type = *type;
  header.tap = *tap;
  return header;
}

Json meta_json(const StreamMeta& meta) {
  Json json = {{"id", meta.id},
               {"category", meta.category},
               {"kind", meta.given_text ? "text" : "answer"},
               {"n_prompt", meta.n_prompt},
               {"cycle_start", meta.cycle_start},
               {"budget", meta.budget},
               {"ended", meta.ended},
               {"own_top1", meta.own_top1}};
  if (!meta.head_sha256.empty()) json["head_sha256"] = meta.head_sha256;
  if (!meta.sources.empty()) json["sources"] = meta.sources;
  return json;
}

std::optional<StreamMeta> read_meta(std::string_view text, int positions) {
  const Json json = parse_json<Json>(text);
  Fields fields(json);
  StreamMeta meta;
  meta.id = fields.text("id");
  meta.category = fields.text("category");
  const std::string kind = fields.text("kind");
  meta.given_text = kind == "text";
  meta.n_prompt = fields.integer("n_prompt", 1);
  meta.cycle_start = fields.integer("cycle_start", 0);
  meta.budget = fields.integer("budget", 0);
  meta.ended = fields.boolean("ended");
  meta.own_top1 = fields.integer("own_top1", -1);
  if (json.is_object() && json.contains("head_sha256"))
    meta.head_sha256 = fields.text("head_sha256");
  if (json.is_object() && json.contains("sources")) meta.sources = fields.texts("sources");
  const bool known_kind = kind == "text" || kind == "answer";
  const bool in_range = meta.n_prompt <= positions && meta.cycle_start <= positions &&
                        meta.own_top1 <= positions + 1 - meta.n_prompt;
  if (!fields.good() || !known_kind || !in_range || meta.id.empty()) return std::nullopt;
  return meta;
}

// A head whose own checksum is right, and whose block ends inside the shard.
std::optional<BlockHead> read_block_head(std::span<const std::byte> rest) {
  BlockHead head;
  if (rest.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, rest.data(), sizeof(head));
  if (head.magic != kBlockMagic || head.head_crc != head_crc(head)) return std::nullopt;
  if (head.bytes < sizeof(head) || head.bytes % kAlignment != 0 || head.bytes > rest.size()) {
    return std::nullopt;
  }
  return head;
}

std::optional<StreamBlock> read_block(std::span<const std::byte> block, const BlockHead& head,
                                      const DumpHeader& header) {
  constexpr uint32_t kMostTokens = uint32_t{1} << 30;
  if (head.n_tokens < 2 || head.n_tokens > kMostTokens || head.n_round_words > kMostTokens ||
      head.json_bytes > kMostJson) {
    return std::nullopt;
  }
  const uint64_t front = front_bytes(head);
  const uint64_t hiddens = hidden_bytes(head, header);
  if (hiddens > block.size() || round_up(front + hiddens, kAlignment) != block.size()) {
    return std::nullopt;
  }
  if (crc32c(block.subspan(sizeof(head))) != head.payload_crc) return std::nullopt;

  const int positions = static_cast<int>(head.n_tokens) - 1;
  auto rest = block.subspan(sizeof(head));
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), head.json_bytes);
  auto meta = read_meta(json, positions);
  if (!meta) return std::nullopt;
  rest = rest.subspan(round_up(head.json_bytes, 4));
  StreamBlock stream;
  stream.meta = *std::move(meta);
  stream.tokens = {reinterpret_cast<const TokenId*>(rest.data()), head.n_tokens};
  rest = rest.subspan(stream.tokens.size_bytes());
  stream.round_words = {reinterpret_cast<const uint32_t*>(rest.data()), head.n_round_words};
  stream.hiddens = block.subspan(front, hiddens);
  const bool ids_known = std::ranges::all_of(
      stream.tokens, [&](TokenId id) { return id >= 0 && id < header.vocab_size; });
  const int n_sources = static_cast<int>(stream.meta.sources.size());
  if (!ids_known || !rounds_are_whole(stream.round_words, positions, n_sources)) {
    return std::nullopt;
  }
  return stream;
}

}  // namespace

int bytes_of(TapType type) { return type == TapType::BF16 ? 2 : 4; }

std::string shard_name(int index) { return fmt::format("shard-{:05}.pldump", index); }

std::vector<fs::path> find_shards(const fs::path& folder) {
  std::vector<fs::path> shards;
  std::error_code failed;
  for (int i = 0; fs::exists(folder / shard_name(i), failed); ++i)
    shards.push_back(folder / shard_name(i));
  return shards;
}

std::string encode_shard_head(const DumpHeader& header) {
  const std::string json = header_json(header).dump();
  ShardHead head;
  head.json_bytes = static_cast<uint32_t>(json.size());
  head.json_crc = crc32c(std::as_bytes(std::span(json)));
  head.head_crc = head_crc(head);
  std::string bytes;
  append(bytes, raw(head));
  bytes += json;
  bytes.resize(round_up(bytes.size(), kAlignment));
  return bytes;
}

Result<ShardContents> parse_shard(std::span<const std::byte> shard, std::string_view name) {
  const auto bad = [&](const char* what) {
    return Error{ErrorCode::BadFormat, fmt::format("{}: {}", name, what)};
  };
  ShardHead head;
  if (shard.size() < sizeof(head)) return bad("too short for a shard of a dump");
  std::memcpy(&head, shard.data(), sizeof(head));
  if (head.magic != kShardMagic) return bad("no shard of a dump: it does not begin like one");
  if (head.head_crc != head_crc(head)) return bad("the head of the shard is damaged");
  if (head.version != kDumpVersion) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("{}: a dump of version {}, and version {} is what is read here", name,
                             head.version, kDumpVersion)};
  }
  const uint64_t head_bytes = round_up(sizeof(head) + uint64_t{head.json_bytes}, kAlignment);
  if (head.json_bytes > kMostJson || head_bytes > shard.size()) {
    return bad("the head of the shard is cut short");
  }
  const auto json = shard.subspan(sizeof(head), head.json_bytes);
  if (crc32c(json) != head.json_crc) return bad("the header of the shard is damaged");
  auto header = read_header({reinterpret_cast<const char*>(json.data()), json.size()});
  if (!header) return bad("the header of the shard lacks a field, or holds an odd one");

  ShardContents contents;
  contents.header = *std::move(header);
  contents.head_bytes = static_cast<int64_t>(head_bytes);
  uint64_t at = head_bytes;
  while (const auto block_head = read_block_head(shard.subspan(at))) {
    const auto block = shard.subspan(at, block_head->bytes);
    auto stream = read_block(block, *block_head, contents.header);
    if (stream) {
      contents.blocks.push_back({.offset = static_cast<int64_t>(at),
                                 .bytes = static_cast<int64_t>(block.size()),
                                 .stream = *std::move(stream)});
    } else {
      contents.dropped_bytes += static_cast<int64_t>(block.size());
    }
    at += block.size();
  }
  contents.end = static_cast<int64_t>(at);
  contents.dropped_bytes += static_cast<int64_t>(shard.size() - at);
  return contents;
}

Result<void> check_stream_names(std::string_view id, std::string_view category) {
  constexpr size_t kMostBytes = 4096;
  const auto bad = [&](const char* what) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("stream {} cannot be dumped: {}", quoted_name(id), what)};
  };
  if (id.empty()) return bad("its id is empty");
  if (!is_utf8(id) || !is_utf8(category)) return bad("its id or category is no UTF-8");
  if (id.size() + category.size() > kMostBytes) return bad("its id is too long");
  return {};
}

Result<void> check_stream(const NewStream& stream, const DumpHeader& header) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("stream {} cannot be dumped: {}", quoted_name(stream.id), what)};
  };
  const int positions = static_cast<int>(stream.tokens.size()) - 1;
  if (auto ok = check_stream_names(stream.id, stream.category); !ok) return ok;
  if (positions < 1) return bad("it has no token that follows another");
  check(stream.hiddens.type() == header.type && stream.hiddens.width() == header.hidden_width,
        "rows of a stream are of the dump's type and width");
  check(stream.hiddens.rows() == positions, "a stream has one token more than rows");
  check(stream.n_prompt >= 1 && stream.n_prompt <= positions && stream.budget >= 0,
        "a stream has a prompt and something behind it");
  check(stream.cycle_start >= 0 && stream.cycle_start <= positions, "a cycle begins in its stream");
  for (const TokenId id : stream.tokens)
    check(id >= 0 && id < header.vocab_size, "tokens of a stream are of the vocabulary");
  check(rounds_are_whole(encode_rounds(stream.rounds), positions,
                         static_cast<int>(stream.sources.size())),
        "rounds of a stream come in order and name their sources");
  return {};
}

StreamMeta meta_of(const NewStream& stream) {
  return {.id = stream.id,
          .category = stream.category,
          .given_text = stream.given_text,
          .n_prompt = stream.n_prompt,
          .cycle_start = stream.cycle_start,
          .budget = stream.budget,
          .ended = stream.ended,
          .own_top1 = stream.own_top1,
          .head_sha256 = stream.head_sha256,
          .sources = stream.sources};
}

EncodedBlock encode_block(const NewStream& stream) {
  const std::string json = meta_json(meta_of(stream)).dump();
  const std::vector<uint32_t> rounds = encode_rounds(stream.rounds);
  const auto hiddens = stream.hiddens.bytes();
  BlockHead head;
  head.json_bytes = static_cast<uint32_t>(json.size());
  head.n_tokens = static_cast<uint32_t>(stream.tokens.size());
  head.n_round_words = static_cast<uint32_t>(rounds.size());
  const uint64_t front = front_bytes(head);
  head.bytes = round_up(front + hiddens.size(), kAlignment);

  EncodedBlock block;
  block.bytes = static_cast<int64_t>(head.bytes);
  block.padding.resize(head.bytes - front - hiddens.size());
  std::string payload = json;
  payload.resize(round_up(json.size(), 4));
  append(payload, std::as_bytes(std::span(stream.tokens)));
  append(payload, std::as_bytes(std::span(rounds)));
  payload.resize(front - sizeof(head));
  uint32_t crc = crc32c(std::as_bytes(std::span(payload)));
  crc = crc32c(hiddens, crc);
  head.payload_crc = crc32c(std::as_bytes(std::span(block.padding)), crc);
  head.head_crc = head_crc(head);
  append(block.front, raw(head));
  block.front += payload;
  return block;
}

std::string manifest_line(const StreamMeta& meta, int positions, std::string_view shard,
                          int64_t offset, int64_t bytes) {
  Json json = meta_json(meta);
  json["positions"] = positions;
  json["shard"] = shard;
  json["offset"] = offset;
  json["bytes"] = bytes;
  return json.dump() + "\n";
}

std::optional<std::string> header_difference(const DumpHeader& has, const DumpHeader& wanted) {
  Json a = header_json(has);
  Json b = header_json(wanted);
  for (Json* json : {&a, &b}) json->erase("prompts_sha256");
  for (const auto& [key, value] : a.items()) {
    if (value != b[key]) return fmt::format("{} {}, not {}", key, value.dump(), b[key].dump());
  }
  return std::nullopt;
}

// A round is row, number of drafts, number accepted; then token and source of each draft.
std::vector<uint32_t> encode_rounds(std::span<const DumpRound> rounds) {
  std::vector<uint32_t> words;
  for (const DumpRound& round : rounds) {
    words.push_back(static_cast<uint32_t>(round.row));
    words.push_back(static_cast<uint32_t>(round.drafts.size()));
    words.push_back(static_cast<uint32_t>(round.n_accepted));
    for (const DumpDraft& draft : round.drafts) {
      words.push_back(static_cast<uint32_t>(draft.token));
      words.push_back(draft.source);
    }
  }
  return words;
}

bool rounds_are_whole(std::span<const uint32_t> words, int positions, int n_sources) {
  int64_t last_row = -1;
  for (size_t at = 0; at < words.size();) {
    if (words.size() - at < 3) return false;
    const int64_t row = words[at];
    const size_t n_drafts = words[at + 1];
    const size_t n_accepted = words[at + 2];
    if (row <= last_row || row >= positions || n_accepted > n_drafts) return false;
    if (n_drafts > (words.size() - at - 3) / 2) return false;
    for (size_t i = 0; i < n_drafts; ++i) {
      const size_t draft = at + 3 + 2 * i;
      if (words[draft] > static_cast<uint32_t>(std::numeric_limits<TokenId>::max())) return false;
      if (words[draft + 1] >= static_cast<uint32_t>(n_sources)) return false;
    }
    at += 3 + 2 * n_drafts;
    last_row = row;
  }
  return true;
}

}  // namespace paceline
