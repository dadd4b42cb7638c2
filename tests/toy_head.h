// A draft head without arithmetic over the toy trunk. What a row gives depends on every row of its
// module on its path, so a row that was lost, kept too long, or paired with another token or hidden
// changes every draft behind it.
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "kernels/table.h"
#include "models/draft_head.h"
#include "tests/toy_model.h"

namespace paceline {

// What the rows of one module give, in order.
class ToyHeadRows {
 public:
  // Reads the next row.
  void read(int module, std::span<const float> hidden, TokenId token) {
    for (const float x : hidden) hash_ = ToyModel::mix(hash_ ^ std::bit_cast<uint32_t>(x));
    hash_ = ToyModel::mix(hash_ + static_cast<uint64_t>(token) * 8 + static_cast<uint64_t>(module));
  }
  // (ToyModel::kDim), whole numbers that bf16 holds.
  std::vector<float> next() const {
    std::vector<float> row;
    for (int i = 0; i < ToyModel::kDim; ++i)
      row.push_back(static_cast<float>((hash_ >> (8 * i)) % 128) - 64);
    return row;
  }
  // Whether the head is right here: three times of four.
  bool is_right() const { return hash_ % 4 != 0; }

 private:
  uint64_t hash_ = 1;
};

class ToyHeadCache final : public SequenceState {
 public:
  explicit ToyHeadCache(int capacity, std::vector<ToyHeadRows> rows = {})
      : SequenceState(capacity, static_cast<int>(rows.size())), rows_(std::move(rows)) {
    rows_.resize(static_cast<size_t>(std::max(capacity, length()) + kMostTreeRows) + 1);
  }
  int64_t bytes() const override { return std::ssize(rows_) * 8; }
  // Whole pages of 64, as real caches.
  Result<std::unique_ptr<SequenceState>> fork(int capacity, int n) const override {
    const int shared = n / 64 * 64;
    return std::unique_ptr<SequenceState>(std::make_unique<ToyHeadCache>(
        std::max(capacity, shared),
        std::vector<ToyHeadRows>(rows_.begin(), rows_.begin() + shared)));
  }
  void append_bytes(int, std::vector<std::byte>&) const override {}

  // A row of the block, behind the one that it continues.
  const ToyHeadRows& read(const Block& open, int row, int module, std::span<const float> hidden,
                          TokenId token) {
    open_block(open);
    const int before = length() + open.parents()[row];  // kNoParent: the last committed one
    ToyHeadRows& at = rows_[length() + row];
    at = before >= 0 ? rows_[before] : ToyHeadRows();
    at.read(module, hidden, token);
    return at;
  }

 private:
  void keep(std::span<const int> path) override {
    for (int i = 0; i < static_cast<int>(path.size()); ++i)
      rows_[length() + i] = rows_[length() + path[i]];
  }

  std::vector<ToyHeadRows> rows_;  // by slot
};

struct ToyHeadWorkspace final : HeadWorkspace {
  int max_rows() const override { return 4096; }
  std::vector<float> next = std::vector<float>(size_t{4096} * ToyModel::kDim);
  std::vector<float> logits;
};

// One row as the head was asked to read it.
struct TracedRow {
  int module;
  int position;
  std::vector<float> hidden;
  TokenId token;
};

class ToyHead final : public DraftHead {
 public:
  ToyHead(const ToyModel& trunk, HeadConfig config) : trunk_(trunk) {
    info_.dim = ToyModel::kDim;
    info_.draft_vocabulary = config.draft_vocabulary.empty()
                                 ? trunk.info().vocab_size
                                 : static_cast<int>(config.draft_vocabulary.size());
    info_.config = std::move(config);
  }

  const HeadInfo& info() const override { return info_; }
  Result<std::unique_ptr<HeadState>> make_state(int capacity, CacheType) const override {
    std::vector<std::unique_ptr<SequenceState>> caches;
    for (int i = 0; i < info_.config.modules; ++i)
      caches.push_back(std::make_unique<ToyHeadCache>(capacity));
    return std::make_unique<HeadState>(std::move(caches));
  }
  Result<std::unique_ptr<DraftHead>> beside(const Model&) const override {
    return Error{ErrorCode::Unsupported, "a toy head goes with one trunk"};
  }
  Result<std::unique_ptr<HeadWorkspace>> make_workspace(int) const override {
    auto workspace = std::make_unique<ToyHeadWorkspace>();
    workspace->logits.resize(static_cast<size_t>(kMostTreeRows) * info_.draft_vocabulary);
    return std::unique_ptr<HeadWorkspace>(std::move(workspace));
  }

  HeadOut forward(const HeadRows& in, HeadState& state, HeadWorkspace& workspace) const override {
    auto& memory = static_cast<ToyHeadWorkspace&>(workspace);
    const auto n = static_cast<int>(in.tokens.size());
    const Block& open = state.append(in.module, in.tokens, in.parents);
    auto& cache = static_cast<ToyHeadCache&>(state.cache(in.module));
    const Mat<float> next(memory.next.data(), in.n_next, ToyModel::kDim);
    check(in.n_logits <= in.n_next && in.n_logits <= kMostTreeRows, "scores have room");
    const Mat<float> logits(memory.logits.data(), in.n_logits, info_.draft_vocabulary);
    for (int i = 0; i < n; ++i) {
      const int row = open.rows() - n + i;
      if (trace != nullptr) {
        const auto hidden = in.hidden.row(i);
        trace->push_back(
            {in.module, open.positions()[row], {hidden.begin(), hidden.end()}, in.tokens[i]});
      }
      const ToyHeadRows& read = cache.read(open, row, in.module, in.hidden.row(i), in.tokens[i]);
      if (i < n - in.n_next) continue;
      std::ranges::copy(read.next(), next.row(i - (n - in.n_next)).begin());
      if (i >= n - in.n_logits) score(read, in.tokens[i], logits.row(i - (n - in.n_logits)));
    }
    return {.next = next, .logits = logits};
  }

  // What it drafts behind a row that ended with this token.
  TokenId guess(const ToyHeadRows& rows, TokenId token) const {
    const TokenId right = trunk_.follower(token);
    return rows.is_right() ? right : (right + 1) % trunk_.info().vocab_size;
  }

  std::vector<TracedRow>* trace = nullptr;  // rows are written down here

 private:
  void score(const ToyHeadRows& rows, TokenId token, std::span<float> logits) const {
    const TokenId best = guess(rows, token);
    for (size_t i = 0; i < logits.size(); ++i)
      logits[i] = full_id(static_cast<int>(i)) == best ? 12.0f : 0.0f;
  }

  const ToyModel& trunk_;
  HeadInfo info_;
};

// A toy trunk whose heads are toys as well. One token decides the next.
class ToyHeadedModel final : public ToyModel {
 public:
  explicit ToyHeadedModel(ToyOptions options = {}) : ToyModel(with_one_token(options)) {}
  Result<std::unique_ptr<DraftHead>> make_head(const HeadTensors& head) const override {
    return std::unique_ptr<DraftHead>(std::make_unique<ToyHead>(*this, head.config));
  }

 private:
  static ToyOptions with_one_token(ToyOptions options) {
    options.memory = 1;
    options.novelty = 0;
    return options;
  }
};

}  // namespace paceline
