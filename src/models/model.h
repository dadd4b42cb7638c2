// What every trunk offers: blocks in, logits and hiddens out, and a state that only commit moves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mat.h"
#include "base/result.h"
#include "base/tap.h"
#include "base/types.h"
#include "models/block.h"

namespace paceline {

class DraftHead;
struct DenseTrunk;
struct HeadShape;
struct HeadTensors;

enum class CacheType { F16, BF16, F32 };

// Facts about a loaded trunk.
struct ModelInfo {
  std::string family;  // "llama"
  int n_layers = 0;
  int dim = 0;
  int hidden_dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;      // rows of the output matrix
  int context_length = 0;  // positions that the checkpoint was made for
  int n_sliding = 0;       // layers that see a sliding window only,
  int window = 0;          // of so many positions
  int64_t parameters = 0;
  int64_t weight_bytes = 0;  // bytes that one pass streams: every matrix and norm once
  int64_t huge_bytes = 0;    // how many of the weights' bytes stand on 2 MiB pages
  std::string isa;           // the kernels that run: "avx512-vnni"
  std::string numerics;      // the rules that they follow: "portable"
  std::vector<std::string> unused_tensors;  // in the file, but no part of this family
};

// What a trunk remembers of one sequence: caches, and for other families windows and recurrent
// state. The position is private; commit is the only way to move it.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;

  int length() const { return length_; }      // committed positions
  int capacity() const { return capacity_; }  // positions there is room for
  virtual int64_t bytes() const = 0;          // memory that the caches take

  // Another sequence that begins with the first `length` committed positions of this one, or with
  // fewer: as many as the family can share. What is shared is held by reference and written by
  // neither. It has room for `capacity` positions, at least for what it shares. TooLarge as
  // make_state.
  virtual Result<std::unique_ptr<SequenceState>> fork(int capacity, int length) const = 0;

  // Committed positions from here on are remembered in every part of the state; of those before,
  // windows have lost theirs.
  virtual int first_remembered() const { return 0; }
  // Appends the bytes that are remembered of a committed position, first_remembered() at least, in
  // an order of the family's own: what probes compare.
  virtual void append_bytes(int position, std::vector<std::byte>& to) const = 0;

  // Keeps those rows of the block read last that lie on `path`: row indices, each the parent of the
  // next, the first without parent. Every other row is void, as if it had never been read.
  void commit(std::span<const int> path);
  // The same for the first n rows, which are a chain.
  void commit(int n_rows);
  // Takes the memory for blocks of up to so many rows now. Else it comes with the first block.
  void reserve_rows(int capacity);

 protected:
  // length: positions that are there from the start, of a fork.
  explicit SequenceState(int capacity, int length = 0) : length_(length), capacity_(capacity) {}

  // forward() announces the block that it is about to append.
  void open_block(const Block& block);

  // Puts the rows of the path in their place, where they do not stand there already.
  virtual void keep(std::span<const int> path) { (void)path; }

 private:
  int length_ = 0;
  int capacity_ = 0;
  int open_rows_ = 0;  // provisional rows of the block read last
  std::vector<int> open_parents_;
  std::vector<int> chain_path_;  // 0, 1, 2 ... for commit(n_rows)
};

// Which rows of a block are to get logits.
enum class LogitRows { None, Last, All };

// What a pass gives to one sequence; views into the workspace, valid until its next use.
struct TrunkOut {
  Mat<float> logits;        // (asked-for rows, vocab_size); an accept rule may change a row for
                            // as long as it looks at it
  Mat<const float> hidden;  // (rows, dim), after the final norm
  // (rows, dim), the residual stream before the final norm; none of a trunk without heads
  Mat<const float> before_norm = {};

  Mat<const float> at(Tap tap) const { return tap == Tap::After ? hidden : before_norm; }
};

// One sequence's part of a pass.
struct PassPart {
  const Block* block = nullptr;
  SequenceState* state = nullptr;  // of this sequence alone
  LogitRows logit_rows = LogitRows::All;
  TrunkOut out = {};  // set by forward

  int n_logits() const;
};

// Memory for the activations of one pass, taken at start.
class Workspace {
 public:
  virtual ~Workspace() = default;
  virtual int max_rows() const = 0;        // of all sequences of a pass together
  virtual int max_logit_rows() const = 0;  // the same for rows that get logits
  // Threads that compute a pass, at most those of the model; 0: all. Changes no bit of it.
  int threads = 0;

  // Which products the passes in this workspace run: those that the model was loaded with, until
  // somebody says otherwise. See Kernels::wide.
  bool wide_kernels = false;
};

// A trunk. Const after loading: what changes is an argument. It computes on a pool of threads of
// its own, so one pass runs at a time; beside() gives another for passes at the same time.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // The same trunk over the same memory, which goes with the last of them, with a pool of so many
  // threads. Called by the thread that is to run its passes. Unsupported where a trunk cannot.
  virtual Result<std::unique_ptr<Model>> beside(int threads) const;

  // TooLarge when the caches for `capacity` positions do not fit into memory.
  virtual Result<std::unique_ptr<SequenceState>> make_state(int capacity,
                                                            CacheType cache) const = 0;
  // max_rows: rows of the largest pass; max_logit_rows: rows for which logits are asked at most.
  virtual Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                            int max_logit_rows) const = 0;

  // Reads each part's block behind the committed positions of its state; the weights are streamed
  // once for all. Rows are provisional until state.commit. Row r's results depend on the committed
  // positions of its own sequence and on r's ancestors alone, bit for bit: never on the number of
  // rows, other sequences, siblings, threads or earlier chunking. Allocates nothing.
  virtual void forward(std::span<PassPart> parts, Workspace& workspace) const = 0;
  // The same for one sequence.
  TrunkOut forward(const Block& block, SequenceState& state, LogitRows rows,
                   Workspace& workspace) const;

  // The tensors that a draft head of so many modules over this trunk has, in the order of a file;
  // none where the family has no heads.
  virtual std::vector<HeadShape> head_shapes(int modules) const;
  // A draft head, which must not outlive this trunk. Values are rounded to bf16 as a file rounds
  // them, then packed: to Q8_0 where the trunk's layers are block-quantised, else to the float type
  // that these have. Embedding and output rows are the trunk's own. Unsupported where the family
  // has no heads; else as check_head().
  virtual Result<std::unique_ptr<DraftHead>> make_head(const HeadTensors& head) const;

  // The weights themselves, for what computes with them in its own way: training. Null where the
  // trunk is no dense decoder.
  virtual const DenseTrunk* dense_trunk() const { return nullptr; }
};

}  // namespace paceline
