#include "io/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"
#include "io/dump_format.h"
#include "io/dump_state.h"
#include "io/shown.h"

namespace paceline {

namespace fs = std::filesystem;

void DumpStream::hidden(int row, std::span<float> out) const {
  check(row >= 0 && row < positions() && out.size() == static_cast<size_t>(width),
        "a row of a stream, and room for it");
  const auto first = static_cast<size_t>(row) * static_cast<size_t>(width);
  if (!hiddens_f32.empty()) {
    std::ranges::copy(hiddens_f32.subspan(first, out.size()), out.begin());
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_f32(hiddens_bf16[first + i]);
}

std::vector<DumpRound> DumpStream::rounds() const {
  std::vector<DumpRound> list;
  for (size_t at = 0; at < round_words.size();) {
    DumpRound round = {.row = static_cast<int>(round_words[at]),
                       .n_accepted = static_cast<int>(round_words[at + 2]),
                       .drafts = std::vector<DumpDraft>(round_words[at + 1])};
    at += 3;
    for (DumpDraft& draft : round.drafts) {
      draft = {.token = static_cast<TokenId>(round_words[at]), .source = round_words[at + 1]};
      at += 2;
    }
    list.push_back(std::move(round));
  }
  return list;
}

DumpStream Dump::State::view(const StreamBlock& block) const {
  DumpStream stream;
  stream.id = block.meta.id;
  stream.category = block.meta.category;
  stream.given_text = block.meta.given_text;
  stream.n_prompt = block.meta.n_prompt;
  stream.cycle_start = block.meta.cycle_start;
  stream.budget = block.meta.budget;
  stream.ended = block.meta.ended;
  stream.own_top1 = block.meta.own_top1;
  stream.tokens = block.tokens;
  stream.width = header.hidden_width;
  const size_t values = block.hiddens.size() / static_cast<size_t>(bytes_of(header.type));
  if (header.type == TapType::BF16)
    stream.hiddens_bf16 = {reinterpret_cast<const bf16*>(block.hiddens.data()), values};
  else
    stream.hiddens_f32 = {reinterpret_cast<const float*>(block.hiddens.data()), values};
  stream.head_sha256 = block.meta.head_sha256;
  stream.sources = block.meta.sources;
  stream.round_words = block.round_words;
  return stream;
}

Result<Dump> Dump::open(const fs::path& folder) {
  std::error_code ignored;
  const std::vector<fs::path> shards = find_shards(folder);
  if (shards.empty()) {
    return Error{ErrorCode::NotFound, fs::exists(folder, ignored)
                                          ? fmt::format("{}: no dump in there: it has no {}",
                                                        shown_path(folder), shard_name(0))
                                          : fmt::format("{}: no such folder", shown_path(folder))};
  }
  auto state = std::make_unique<State>();
  for (const fs::path& path : shards) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    file->read_ahead(file->bytes());
    auto contents = parse_shard(file->bytes(), shown_path(path));
    if (!contents) return contents.error();
    if (state->files.empty()) {
      state->header = contents->header;
    } else if (const auto differs = header_difference(contents->header, state->header)) {
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: belongs to another dump than {}: it has {}", shown_path(path),
                               shard_name(0), *differs)};
    }
    state->dropped_bytes += contents->dropped_bytes;
    for (ShardBlock& block : contents->blocks) state->blocks.push_back(std::move(block.stream));
    state->files.push_back(*std::move(file));
  }
  std::unordered_set<std::string_view> ids;
  for (const StreamBlock& block : state->blocks) {
    if (ids.insert(block.meta.id).second) continue;
    return Error{ErrorCode::BadFormat, fmt::format("{}: the stream {} is there twice",
                                                   shown_path(folder), quoted_name(block.meta.id))};
  }
  return Dump(std::move(state));
}

Dump::Dump(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dump::~Dump() = default;
Dump::Dump(Dump&&) noexcept = default;
Dump& Dump::operator=(Dump&&) noexcept = default;

const DumpHeader& Dump::header() const { return state_->header; }
int Dump::size() const { return static_cast<int>(state_->blocks.size()); }
DumpStream Dump::stream(int index) const {
  check(index >= 0 && index < size(), "a stream of the dump");
  return state_->view(state_->blocks[static_cast<size_t>(index)]);
}
int64_t Dump::positions() const {
  int64_t sum = 0;
  for (const StreamBlock& block : state_->blocks)
    sum += static_cast<int64_t>(block.tokens.size()) - 1;
  return sum;
}
int Dump::shards() const { return static_cast<int>(state_->files.size()); }
int64_t Dump::dropped_bytes() const { return state_->dropped_bytes; }

}  // namespace paceline
