// Dumps: token streams with the trunk's hiddens, what a draft head is trained and replayed on. A
// dump is a folder of shards; docs/formats.md has the layout.
//
// A stream of n positions has tokens t_0 .. t_n and hiddens h_0 .. h_{n-1}: row p is the trunk's
// hidden of t_p, at the tap that the header names, rounded to the header's type. So every row has
// the token that follows it, t_{p+1}; rows up to n - 2 have the one behind, which a head is to
// guess.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tap.h"
#include "base/types.h"

namespace paceline {

int bytes_of(TapType type);  // of one value

// What all streams of a dump have in common: how the numbers in it came about. All fields but the
// hash of the prompts are the same in every shard.
struct DumpHeader {
  int hidden_width = 0;
  TapType type = TapType::BF16;
  Tap tap = Tap::After;
  std::string family;  // "llama"
  int vocab_size = 0;
  std::string model_sha256;    // "" of a model that was made from no file
  std::string numerics;        // "portable"
  std::string weights;         // "native"
  std::string cache;           // "f16"
  uint64_t seed = 0;           // of sampling
  std::string settings;        // of the command that made it; JSON, compared as text
  std::string prompts_sha256;  // of the file of prompts or texts; may differ from shard to shard
};

// A guess of the engine's own drafter, and who made it.
struct DumpDraft {
  TokenId token = 0;
  uint32_t source = 0;  // index into DumpStream::sources
};

// A round in which something was drafted: the text so far ended with token row + 1, whose
// predecessor's hidden, h_row, is the last that was known. draft d (from 0) stands for token
// row + 2 + d; the first n_accepted of them stood.
struct DumpRound {
  int row = 0;
  int n_accepted = 0;
  std::vector<DumpDraft> drafts;
};

// One stream; a view that is valid as long as its dump.
struct DumpStream {
  std::string_view id;
  std::string_view category;  // "" when there is none
  bool given_text = false;    // not the trunk's own answer
  int n_prompt = 0;           // tokens that were given; of a given text 1
  // Where a short cycle begins that goes on to the end; positions() when there is none. Tokens from
  // here on repeat.
  int cycle_start = 0;
  int budget = 0;      // tokens that could have been emitted
  bool ended = false;  // by an end token or a stop string, and not by the budget
  // Of the tokens behind the prompt, how many were the trunk's own first choice; -1: not known.
  int own_top1 = -1;
  std::span<const TokenId> tokens;  // positions() + 1
  int width = 0;
  // The hiddens, row by row: one of the two, as the header's type says.
  std::span<const bf16> hiddens_bf16;
  std::span<const float> hiddens_f32;
  std::string_view head_sha256;  // of the head whose drafts are among the rounds; "" where none is
                                 // known
  std::span<const std::string> sources;   // names of drafters: "lookup", "mtp"
  std::span<const uint32_t> round_words;  // as in the file; rounds() reads them

  int positions() const { return static_cast<int>(tokens.size()) - 1; }
  void hidden(int row, std::span<float> out) const;  // out: width values
  std::vector<DumpRound> rounds() const;             // in the order of rows
};

// A dump opened for reading. It sees whole streams only, also while somebody is writing: those that
// were there when it was opened. What is left behind by a killed writer, or damaged, is skipped and
// counted.
class Dump {
 public:
  // Every checksum is compared: about as fast as memory is read. NotFound where there is no shard;
  // BadFormat for another version and for shards that do not belong together.
  static Result<Dump> open(const std::filesystem::path& folder);
  ~Dump();
  Dump(Dump&&) noexcept;
  Dump& operator=(Dump&&) noexcept;

  const DumpHeader& header() const;
  int size() const;  // streams
  DumpStream stream(int index) const;
  int64_t positions() const;  // of all streams
  int shards() const;
  int64_t dropped_bytes() const;  // of blocks that are not whole or damaged

 private:
  friend Result<Dump> open_records(const std::filesystem::path& file, int width);
  struct State;
  explicit Dump(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A file of headerless records (docs/formats.md) of this width, as a dump: a stream ends where pos
// is not one more than before. Ids are "1", "2", ...; nothing is known of prompts, so that each
// stream has one token of it. The last record of a stream has no following token and becomes that.
Result<Dump> open_records(const std::filesystem::path& file, int width);

}  // namespace paceline
