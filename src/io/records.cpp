#include "io/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/mapped_file.h"
#include "io/dump_state.h"
#include "io/output_file.h"
#include "io/shown.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

struct RecordHead {
  uint32_t pos = 0;
  uint32_t row = 0;
  uint32_t token = 0;
};

constexpr size_t kBufferBytes = size_t{1} << 20;

size_t record_bytes(int width) { return sizeof(RecordHead) + sizeof(float) * size_t(width); }

RecordHead head_at(std::span<const std::byte> records, size_t index, size_t bytes) {
  RecordHead head;
  std::memcpy(&head, records.data() + index * bytes, sizeof(head));
  return head;
}

}  // namespace

Result<int64_t> write_records(const fs::path& file, const Dump& dump) {
  auto out = OutputFile::create(file);
  if (!out) return out.error();
  const int width = dump.header().hidden_width;
  const size_t bytes = record_bytes(width);
  std::vector<std::byte> buffer;
  std::vector<float> hidden(static_cast<size_t>(width));
  for (int i = 0; i < dump.size(); ++i) {
    const DumpStream stream = dump.stream(i);
    for (int row = 0; row < stream.positions(); ++row) {
      stream.hidden(row, hidden);
      const RecordHead head = {static_cast<uint32_t>(row), static_cast<uint32_t>(row),
                               static_cast<uint32_t>(stream.tokens[static_cast<size_t>(row)])};
      const size_t at = buffer.size();
      buffer.resize(at + bytes);
      std::memcpy(buffer.data() + at, &head, sizeof(head));
      std::memcpy(buffer.data() + at + sizeof(head), hidden.data(), sizeof(float) * hidden.size());
      if (buffer.size() < kBufferBytes) continue;
      if (auto written = out->write(buffer); !written) return written.error();
      buffer.clear();
    }
  }
  if (auto written = out->write(buffer); !written) return written.error();
  if (auto committed = out->commit(); !committed) return committed.error();
  return dump.positions();
}

// The streams of a file lie in the dump's own memory: tokens and hiddens one behind another.
Result<Dump> open_records(const fs::path& path, int width) {
  check(width >= 1, "records have hiddens");
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto all = file->bytes();
  const size_t bytes = record_bytes(width);
  const size_t n = all.size() / bytes;
  if (n == 0) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: {} bytes are not one record of width {}, which has {}",
                             shown_path(path), all.size(), width, bytes)};
  }
  auto state = std::make_unique<Dump::State>();
  state->header.hidden_width = width;
  state->header.type = TapType::F32;
  state->dropped_bytes = static_cast<int64_t>(all.size() - n * bytes);
  state->tokens.reserve(n);
  state->memory.resize(n * sizeof(float) * static_cast<size_t>(width));
  std::vector<size_t> starts;  // of streams
  RecordHead last;
  for (size_t i = 0; i < n; ++i) {
    const RecordHead head = head_at(all, i, bytes);
    constexpr uint32_t kMost = uint32_t{1} << 24;  // as integers, most floats are beyond it
    if (head.pos >= kMost || head.token >= kMost) {
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: record {} has position {} and token {}; the width is hardly {}",
                               shown_path(path), i, head.pos, head.token, width)};
    }
    if (i == 0 || head.pos != last.pos + 1) starts.push_back(i);
    last = head;
    state->tokens.push_back(static_cast<TokenId>(head.token));
    state->header.vocab_size = std::max(state->header.vocab_size, static_cast<int>(head.token) + 1);
    const size_t hidden_bytes = bytes - sizeof(RecordHead);
    std::memcpy(state->memory.data() + i * hidden_bytes,
                all.data() + i * bytes + sizeof(RecordHead), hidden_bytes);
  }
  starts.push_back(n);
  for (size_t s = 0; s + 1 < starts.size(); ++s) {
    const size_t first = starts[s];
    const size_t n_tokens = starts[s + 1] - first;
    if (n_tokens < 2) {  // nothing follows its only token
      state->dropped_bytes += static_cast<int64_t>(bytes);
      continue;
    }
    const int positions = static_cast<int>(n_tokens) - 1;
    StreamBlock block;
    block.meta.id = fmt::format("{}", state->blocks.size() + 1);
    block.meta.n_prompt = 1;
    block.meta.cycle_start = positions;
    block.meta.budget = positions;
    block.tokens = std::span(state->tokens).subspan(first, n_tokens);
    const size_t hidden_bytes = bytes - sizeof(RecordHead);
    block.hiddens =
        std::span(state->memory)
            .subspan(first * hidden_bytes, static_cast<size_t>(positions) * hidden_bytes);
    state->blocks.push_back(std::move(block));
  }
  return Dump(std::move(state));
}

}  // namespace paceline
