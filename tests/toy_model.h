// A trunk without arithmetic, for tests of everything above the kernels. The logits of a row are
// drawn from a hash of the last few tokens on the row's own path, so a rollback that was skipped or
// a wrong parent changes the text, and hidden rows say which position and token they stand for.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/check.h"
#include "models/model.h"

namespace paceline {

struct ToyOptions {
  int vocab_size = 300;
  int context_length = 1 << 20;
  // Only ids below this one are ever chosen: a small number makes text that repeats itself.
  int speech = 300;
  // Tokens on the path that the next one depends on, 1 to 8.
  int memory = 3;
  // Every so many positions the next token depends on the position too, so that repetitive text
  // takes a new turn; 0: never.
  int novelty = 0;
  // Logits take so many values; few of them make ties the rule. The lowest is zero, of either sign.
  int levels = 1 << 20;
  uint64_t seed = 1;
  int nan_from_pos = std::numeric_limits<int>::max();  // rows from here on have NaN logits only

  // Negative controls: faults that a test of equality must notice.
  bool skips_rollback = false;   // rows that fell stay in the state
  bool mixes_siblings = false;   // a row continues the row before it, whatever its parent
  bool keeps_stale_row = false;  // the first row that falls takes the place of the last that stood
  bool splits_by_threads = false;  // logits depend on the number of threads,
  bool feels_neighbours = false;   // on other sequences in the pass,
  bool feels_width = false;        // on the number of rows
};

class ToyState : public SequenceState {
 public:
  ToyState(const ToyOptions& options, int capacity, std::span<const TokenId> prefix = {})
      : SequenceState(capacity, static_cast<int>(prefix.size())), options_(options) {
    tokens_.reserve(4 * static_cast<size_t>(capacity) + 1024);
    open_tokens_.reserve(1024);
    open_parents_.reserve(1024);
    tokens_.assign(prefix.begin(), prefix.end());
  }
  Result<std::unique_ptr<SequenceState>> fork(int capacity, int length) const override {
    const auto prefix = std::span(tokens_).first(length);
    return std::unique_ptr<SequenceState>(
        std::make_unique<ToyState>(options_, std::max(capacity, length), prefix));
  }
  int64_t bytes() const override { return static_cast<int64_t>(sizeof(TokenId)) * capacity(); }
  void append_bytes(int position, std::vector<std::byte>& to) const override {
    const auto bytes = std::as_bytes(std::span(&tokens_[position], 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  const std::vector<TokenId>& tokens() const { return tokens_; }  // committed

 private:
  friend class ToyModel;

  void open(const Block& block) {
    open_block(block);
    open_tokens_.assign(block.tokens().begin(), block.tokens().end());
    open_parents_.assign(block.parents().begin(), block.parents().end());
  }
  void keep(std::span<const int> path) override {
    if (options_.skips_rollback) {
      tokens_.insert(tokens_.end(), open_tokens_.begin(), open_tokens_.end());
      return;
    }
    for (const int row : path) tokens_.push_back(open_tokens_[row]);
    if (options_.keeps_stale_row && !path.empty() && path.size() < open_tokens_.size())
      tokens_.back() = open_tokens_[path.size()];
  }

  // The token `back` places above row `row`, 0 being its own; -1 above the start.
  TokenId above(int row, int back) const {
    for (; row >= 0 && back > 0; --back) {
      row = options_.mixes_siblings ? row - 1 : open_parents_[row];
    }
    if (row >= 0) return open_tokens_[row];
    const int at = static_cast<int>(tokens_.size()) - 1 - back;
    return at >= 0 ? tokens_[at] : -1;
  }

  ToyOptions options_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> open_tokens_;
  std::vector<int> open_parents_;
};

class ToyWorkspace : public Workspace {
 public:
  ToyWorkspace(int max_rows, int max_logit_rows, int vocab_size, int dim)
      : max_rows_(max_rows),
        max_logit_rows_(max_logit_rows),
        logits_(static_cast<size_t>(max_logit_rows) * vocab_size),
        hidden_(static_cast<size_t>(max_rows) * dim),
        before_norm_(static_cast<size_t>(max_rows) * dim) {}
  int max_rows() const override { return max_rows_; }
  int max_logit_rows() const override { return max_logit_rows_; }

 private:
  friend class ToyModel;
  int max_rows_;
  int max_logit_rows_;
  std::vector<float> logits_;
  std::vector<float> hidden_;
  std::vector<float> before_norm_;
};

class ToyModel : public Model {
 public:
  static constexpr int kDim = 4;

  explicit ToyModel(const ToyOptions& options = {}) : options_(options) {
    info_.family = "toy";
    info_.n_layers = 1;
    info_.dim = kDim;
    info_.vocab_size = options.vocab_size;
    info_.context_length = options.context_length;
  }

  static uint64_t mix(uint64_t x) {  // the finaliser of splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  const ModelInfo& info() const override { return info_; }
  // The token that follows `last`, where the next one depends on one token alone.
  TokenId follower(TokenId last) const {
    check(options_.memory == 1 && options_.novelty == 0, "one token decides the next");
    const uint64_t hash = mix(options_.seed + 0x9e3779b97f4a7c15u);
    std::vector<float> logits(static_cast<size_t>(options_.vocab_size));
    fill(mix(hash ^ static_cast<uint64_t>(last + 2)), 0, logits);
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  // Passes of any sequence so far, and their rows.
  int64_t passes() const { return passes_; }
  int64_t rows() const { return rows_; }

  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType) const override {
    return std::unique_ptr<SequenceState>(std::make_unique<ToyState>(options_, capacity));
  }
  Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                    int max_logit_rows) const override {
    return std::unique_ptr<Workspace>(
        std::make_unique<ToyWorkspace>(max_rows, max_logit_rows, options_.vocab_size, kDim));
  }

  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override {
    auto& memory = static_cast<ToyWorkspace&>(workspace);
    ++passes_;
    int hidden_row = 0;
    int logit_row = 0;
    uint64_t fault = options_.splits_by_threads ? static_cast<uint64_t>(memory.threads) : 0;
    if (options_.feels_neighbours) fault += parts.size() - 1;
    for (PassPart& part : parts) {
      const Block& block = *part.block;
      if (options_.feels_width) fault = static_cast<uint64_t>(block.rows() > 1 ? 1 : 0);
      auto& toy = static_cast<ToyState&>(*part.state);
      toy.open(block);
      const int first = block.rows() - part.n_logits();
      check(hidden_row + block.rows() <= memory.max_rows_, "a pass fits into the workspace");
      check(logit_row + part.n_logits() <= memory.max_logit_rows_, "logits fit as well");
      const Mat<float> logits(
          memory.logits_.data() + static_cast<size_t>(logit_row) * options_.vocab_size,
          part.n_logits(), options_.vocab_size);
      const Mat<float> hidden(memory.hidden_.data() + static_cast<size_t>(hidden_row) * kDim,
                              block.rows(), kDim);
      const Mat<float> before(memory.before_norm_.data() + static_cast<size_t>(hidden_row) * kDim,
                              block.rows(), kDim);
      for (int row = 0; row < block.rows(); ++row) {
        const int pos = block.positions()[row];
        const TokenId token = block.tokens()[row];
        check(token >= 0 && token < options_.vocab_size, "a token is in the vocabulary");
        const float values[kDim] = {static_cast<float>(pos), static_cast<float>(token), 1, -1};
        std::copy_n(values, kDim, hidden.row(row).begin());
        for (int i = 0; i < kDim; ++i) before.row(row)[i] = 2 * values[i];
        if (row >= first) fill(path_hash(toy, row, pos) + fault, pos, logits.row(row - first));
      }
      part.out = {.logits = logits, .hidden = hidden, .before_norm = before};
      hidden_row += block.rows();
      logit_row += part.n_logits();
    }
    rows_ += hidden_row;
  }

 private:
  uint64_t path_hash(const ToyState& state, int row, int pos) const {
    uint64_t hash = mix(options_.seed + 0x9e3779b97f4a7c15u);
    for (int back = 0; back < options_.memory; ++back) {
      hash = mix(hash ^ static_cast<uint64_t>(state.above(row, back) + 2));
    }
    if (options_.novelty > 0 && pos % options_.novelty == 0)
      hash = mix(hash ^ (uint64_t(pos) << 32));
    return hash;
  }

  void fill(uint64_t hash, int pos, std::span<float> logits) const {
    for (size_t id = 0; id < logits.size(); ++id) {
      const uint64_t draw = mix(hash + id * 0x9e3779b97f4a7c15u);
      const auto level = static_cast<float>((draw >> 8) % options_.levels);
      logits[id] = level / 64 * ((draw & 1) != 0 ? 1.0f : (level == 0 ? -1.0f : 1.0f));
      if (static_cast<int>(id) >= options_.speech) logits[id] = -1 - logits[id];
      if (pos >= options_.nan_from_pos) logits[id] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  ToyOptions options_;
  ModelInfo info_;
  mutable int64_t passes_ = 0;
  mutable int64_t rows_ = 0;
};

}  // namespace paceline
