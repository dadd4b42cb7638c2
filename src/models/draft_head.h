// A draft head: a small module that reads a hidden state of the trunk and the token that followed
// it and scores the token behind that one (DeepSeek-V3's MTP module; recurrently, FastMTP).
//
//   x = fc [ RMS(embedding of t_{p+1}) ; RMS(h_p) ]      kMergeOrder
//   x = a layer of the trunk's own family, over the head's own cache, at position p
//   y = RMS(x)          logits = (the trunk's output rows of the draft vocabulary) y: scores
//   t_{p+2}
//
// Row p pairs the hidden h_p with the token t_{p+1}. One depth further on, y (tap after) or x (tap
// before) takes the place of the hidden, and the token drafted that of the token.
//
// With one module, that next row is row p + 1 of the same module. With K modules depth d <= K has
// module d, whose row p pairs what module d - 1 gave at its row p with t_{p+d}; beyond K the last
// module goes on by itself, at rows p + 1 and so on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mat.h"
#include "base/result.h"
#include "models/head_file.h"
#include "models/model.h"

namespace paceline {

// Columns of fc: the embedding's half first, as released heads have it (the DeepSeek-V3 report
// writes it the other way round). Serving and training both take the order from here.
enum class MergeHalf { Embedding, Hidden };
inline constexpr MergeHalf kMergeOrder[2] = {MergeHalf::Embedding, MergeHalf::Hidden};

struct HeadInfo {
  HeadConfig config;
  int dim = 0;
  int64_t parameters = 0;
  int64_t weight_bytes = 0;  // that one row of one module streams: layer, merge, output rows
  std::string layer_type;    // of its matrices: "q8_0"
  std::string output_type;   // of the output rows, which are the trunk's
  int draft_vocabulary = 0;  // ids that are scored
};

// What a head remembers of one sequence: a cache a module. Rows that were read are provisional
// until commit; those behind the committed ones are void then, or at rollback. Provisional rows are
// a tree, in which those that are text stand in front, as a chain.
class HeadState {
 public:
  // One state a module, all of one length.
  explicit HeadState(std::vector<std::unique_ptr<SequenceState>> modules);

  // Provisional rows of a module at most.
  static constexpr int kMostOpenRows = 128;

  int modules() const { return static_cast<int>(parts_.size()); }
  int length(int module) const { return parts_[module].state->length(); }  // committed rows
  int rows(int module) const { return length(module) + parts_[module].open.rows(); }
  int capacity() const { return parts_.front().state->capacity(); }
  int64_t bytes() const;

  // The first n provisional rows of the module stand, the others are void.
  void commit(int module, int n);
  void rollback(int module) { commit(module, 0); }

  // As SequenceState::fork: the first `length` rows of every module, or fewer, the same number of
  // each. length is at most that of the shortest module.
  Result<std::unique_ptr<HeadState>> fork(int capacity, int length) const;

  // For the head: puts rows with these tokens behind those that are there, parents as in HeadRows.
  // All provisional rows.
  const Block& append(int module, std::span<const TokenId> tokens, std::span<const int> parents);
  SequenceState& cache(int module) { return *parts_[module].state; }
  const SequenceState& cache(int module) const { return *parts_[module].state; }

 private:
  struct Part {
    std::unique_ptr<SequenceState> state;
    Block open;  // the provisional rows
  };
  std::vector<Part> parts_;
};

// Memory for the activations of one forward(); serves any number of sequences in turn.
class HeadWorkspace {
 public:
  virtual ~HeadWorkspace() = default;
  virtual int max_rows() const = 0;
};

// Rows that a module reads, behind those that the state holds.
struct HeadRows {
  int module = 0;
  Mat<const float> hidden;          // (rows, dim): the trunk's at the tap, or a module's `next`
  std::span<const TokenId> tokens;  // one a row: the token that followed
  // One a row: which of the module's provisional rows it continues, by its index among all of them
  // (those of these rows included), or Block::kNoParent for the last committed one. Empty: a chain
  // behind the last provisional row.
  std::span<const int> parents = {};
  int n_next = 0;    // of the last so many rows `next` is wanted
  int n_logits = 0;  // and of the last so many of these the scores, kMostTreeRows at most
};

// Views into the workspace, valid until its next use.
struct HeadOut {
  Mat<const float> next;  // (n_next, dim): the hidden for the next depth or module
  Mat<float> logits;      // (n_logits, ids of the draft vocabulary)
};

// Const after loading. It computes with the trunk's kernels and on its threads, and must not
// outlive it.
class DraftHead {
 public:
  virtual ~DraftHead() = default;
  virtual const HeadInfo& info() const = 0;

  // The same head over the same memory, for a trunk that Model::beside() made.
  virtual Result<std::unique_ptr<DraftHead>> beside(const Model& trunk) const = 0;

  // Room for `capacity` rows of every module. TooLarge when there is no memory for them.
  virtual Result<std::unique_ptr<HeadState>> make_state(int capacity, CacheType cache) const = 0;
  virtual Result<std::unique_ptr<HeadWorkspace>> make_workspace(int max_rows) const = 0;

  // Keys and values of all rows, and the rest of the module for the last n_next of them alone. What
  // a row gives depends on the rows of its path and on itself, bit for bit: never on other
  // branches, on how many are read at a time, on n_next or on threads. Allocates nothing.
  virtual HeadOut forward(const HeadRows& rows, HeadState& state,
                          HeadWorkspace& workspace) const = 0;

  // The full id of an entry of the logits.
  TokenId full_id(int index) const {
    const auto& ids = info().config.draft_vocabulary;
    return ids.empty() ? index : ids[index];
  }
};

}  // namespace paceline
