// Writes dumps, stream by stream, so that whatever happens the streams written so far stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "io/dump.h"

namespace paceline {

// Rows of hiddens in the type of a dump.
class HiddenRows {
 public:
  HiddenRows(TapType type, int width) : type_(type), width_(width) {}
  void reserve(int rows);
  // Whole rows, rounded to the type.
  void append(std::span<const float> values);

  TapType type() const { return type_; }
  int width() const { return width_; }
  int rows() const;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  TapType type_;
  int width_;
  std::vector<std::byte> bytes_;
};

// A stream to be written; fields as in DumpStream.
struct NewStream {
  std::string id;  // not empty, UTF-8, not in the dump yet
  std::string category = {};
  bool given_text = false;
  int n_prompt = 0;
  int cycle_start = 0;
  int budget = 0;
  bool ended = false;
  int own_top1 = -1;
  std::vector<TokenId> tokens = {};  // one more than hiddens has rows
  HiddenRows hiddens;
  std::string head_sha256 = {};
  std::vector<std::string> sources = {};
  std::vector<DumpRound> rounds = {};
};

// Whether a stream can be called so: BadUsage for an empty id, for what is no UTF-8 and for more
// than 4,096 bytes of both.
Result<void> check_stream_names(std::string_view id, std::string_view category);

struct DumpWriterOptions {
  // A shard takes no further stream that would make it larger, unless it would be its only one.
  int64_t shard_bytes = int64_t{256} << 20;
};

// Appends to a dump, or begins one. The folder is locked for as long as the writer lives. The same
// streams in the same order give the same files, byte for byte, however often the writing was cut
// short and taken up again.
class DumpWriter {
 public:
  // Where a dump is already, its last whole block is found and everything behind it dropped; a
  // header that differs from `header` is refused with the field's name. Readers of the dump are not
  // disturbed. Io when another process writes here, and for what the system refuses.
  static Result<DumpWriter> open(const std::filesystem::path& folder, const DumpHeader& header,
                                 const DumpWriterOptions& options = {});
  ~DumpWriter();
  DumpWriter(DumpWriter&&) noexcept;
  DumpWriter& operator=(DumpWriter&&) noexcept;

  bool has(std::string_view id) const;
  // Whether the stream of this id was made of these tokens: an answer of this prompt, or this given
  // text.
  bool has_of(std::string_view id, std::span<const TokenId> given) const;
  // `wanted`, or, where the dump has that, the first of wanted.2, wanted.3, ... that it has not.
  std::string unused_id(std::string_view wanted) const;

  // Appends one stream. After an error the dump holds what it held, and the writer is of no further
  // use.
  Result<void> add(const NewStream& stream);
  // Through to the disk. Not needed against a killed process; against a power cut it is.
  Result<void> sync();

  // Of the whole dump, what was there before included.
  int64_t streams() const;
  int64_t positions() const;
  int shards() const;
  int64_t dropped_bytes() const;  // found at the end when it was opened

 private:
  struct State;
  explicit DumpWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline
