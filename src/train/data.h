// Training data: which rows of a dump's streams are used for what, and batches of them in memory.
//
// A row p of a stream pairs the hidden h_p with its next token t_{p+1} and, at depth s, is to guess
// t_{p+s+1}. Streams end where a short cycle begins, are cut where a row is bad and where they grow
// too long, and never share a batch's row with another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/threads.h"
#include "io/dump.h"
#include "models/head_file.h"
#include "train/net.h"
#include "train/trunk_side.h"

namespace paceline::train {

struct DataOptions {
  int max_rows = 512;       // of a piece
  double held_out = 0.1;    // share of streams that is never trained on, chosen by their ids
  bool prompt_rows = true;  // also rows whose target belongs to the prompt
};

// Rows first .. first + rows - 1 of a stream; their tokens reach one further.
struct Piece {
  int stream = 0;
  int first = 0;
  int rows = 0;
};

struct DataFacts {
  int64_t positions = 0;   // rows that are trained on
  int64_t held_out = 0;    // rows that are not
  int64_t cycle_rows = 0;  // left away behind the beginning of a short cycle
  int64_t bad_rows = 0;    // not finite, or all zero
  std::string first_bad;   // "stream 's', position 7: the hidden holds a NaN"
  int64_t own_tokens = 0;  // tokens behind prompts of which it is known
  int64_t own_top1 = 0;    // of these: the trunk's own first choice
  // Share of the latter; 1 where nothing is known.
  double own_share() const;
};

// A stream is held out by a hash of its id, the same in every run and every dump.
bool is_held_out(std::string_view id, double share);

class TrainingData {
 public:
  // The dump must outlive it. BadFormat where more than one row in a hundred is bad, or nothing is
  // left to train on or to hold out.
  static Result<TrainingData> of(const Dump& dump, const DataOptions& options, ThreadPool& pool);

  const Dump& dump() const { return *dump_; }
  std::span<const Piece> training() const { return training_; }
  std::span<const Piece> held_out() const { return held_out_; }
  // The trunk's own answers among the streams held out; given texts where there are none.
  std::span<const int> evaluation_streams() const { return evaluation_streams_; }
  const DataFacts& facts() const { return facts_; }
  // Of the streams' ids and tokens, training and held out.
  std::string sha256() const;
  const DataOptions& options() const { return options_; }

  // The n most frequent ids of the training rows' tokens, `always` among them, ascending; all ids
  // that occur where they are fewer. An empty list says all of the vocabulary.
  std::vector<TokenId> shortlist(int n, std::span<const TokenId> always, int vocab_size) const;
  // Share of the training rows' tokens that are in the list.
  double coverage(std::span<const TokenId> shortlist) const;

 private:
  const Dump* dump_ = nullptr;
  DataOptions options_;
  std::vector<Piece> training_, held_out_;
  std::vector<int> evaluation_streams_;
  DataFacts facts_;
};

// Which pieces a step takes: all of them in an order drawn anew for each pass over the data, which
// follows from seed and step alone.
class PieceOrder {
 public:
  PieceOrder(int n_pieces, int per_step, uint64_t seed);
  // Indices of step `step`, from 0.
  std::vector<int> of_step(int64_t step);

 private:
  void draw(int64_t pass);

  int n_;
  int per_step_;
  uint64_t seed_;
  int64_t pass_ = -1;
  std::vector<int> order_;
};

// Pieces in memory as a NetBatch.
class BatchBuilder {
 public:
  // tap: that of the dump. words: the draft vocabulary; empty: all.
  BatchBuilder(const TrainingData& data, const TrunkSide& trunk, Tap tap,
               std::span<const TokenId> words, Targets targets, int depths);

  // beta: depth s weighs beta^(s-1). The loss is a mean over the rows of a piece that have a
  // target, then over `pieces_of_step`. depths: those that are trained now.
  const NetBatch& build(std::span<const Piece> pieces, int depths, double beta, int pieces_of_step);
  // Rows with a target at depth 1 in the batch built last.
  int64_t targets() const { return targets_of_batch_; }
  // Its line for people: "row 5 of stream s: hidden of token 17, reads 291, is to guess 33".
  std::string example() const;

 private:
  const TrainingData* data_;
  const TrunkSide* trunk_;
  Tap tap_;
  Targets targets_;
  int n_depths_;
  std::vector<int> index_of_word_;  // -1: not in the draft vocabulary
  std::vector<float> hidden_, final_hidden_, embedding_;
  NetBatch batch_;
  int64_t targets_of_batch_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace paceline::train
