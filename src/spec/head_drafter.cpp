#include "spec/head_drafter.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/softmax.h"

namespace paceline {

HeadDrafter::HeadDrafter(const DraftHead& head, HeadWorkspace& workspace, CacheType cache)
    : head_(&head),
      workspace_(&workspace),
      cache_(cache),
      n_modules_(head.info().config.modules),
      dim_(head.info().dim),
      modules_(n_modules_),
      recycled_(dim_) {
  check(workspace.max_rows() >= kWorkspaceRows, "the workspace has room for rows put aside");
  for (Module& module : modules_) module.inputs.resize(static_cast<size_t>(kWorkspaceRows) * dim_);
  row_tokens_.reserve(kWorkspaceRows);
  chain_.reserve(kMostDrafts);
}

Result<void> HeadDrafter::reserve(int capacity, std::unique_ptr<HeadState> begun) {
  if (begun == nullptr) {
    auto made = head_->make_state(capacity, cache_);
    if (!made) return made.error();
    begun = std::move(*made);
  }
  state_ = std::move(begun);
  reserved_ = capacity;
  return {};
}

void HeadDrafter::begin(std::span<const TokenId> prompt, int capacity) {
  if (reserved_ < capacity) check(reserve(capacity).has_value(), "memory for a head was reserved");
  reserved_ = -1;
  text_.reserve(static_cast<size_t>(capacity));
  text_.assign(prompt.begin(), prompt.end());
  for (Module& module : modules_) module.n_true = 0;
  depth_ = 0;
}

void HeadDrafter::prefill(std::span<const TokenId> next, Mat<const float> hidden) {
  put_aside(next, hidden);
}

void HeadDrafter::observe(std::span<const TokenId> tokens, Mat<const float> hidden) {
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  put_aside(tokens, hidden);
}

void HeadDrafter::put_aside(std::span<const TokenId> tokens, Mat<const float> hidden) {
  check(hidden.rows == static_cast<int>(tokens.size()) && hidden.cols == dim_,
        "each token comes with the hidden before it");
  for (int done = 0; done < hidden.rows;) {
    if (modules_[0].n_true == kMostPending) catch_up();
    const int n = std::min(hidden.rows - done, kMostPending - modules_[0].n_true);
    add_inputs(0, modules_[0].n_true, hidden.middle(done, n));
    modules_[0].n_true += n;
    done += n;
  }
}

// --- rows of modules -----------------------------------------------------------------------------

void HeadDrafter::add_inputs(int module, int at, Mat<const float> rows) {
  check(at + rows.rows <= kWorkspaceRows, "a module's inputs have room");
  std::copy_n(rows.data, static_cast<int64_t>(rows.rows) * dim_,
              modules_[module].inputs.data() + static_cast<int64_t>(at) * dim_);
}

void HeadDrafter::drop_inputs(int module, int n) {
  auto& [rows, n_true] = modules_[module];
  std::copy(rows.begin() + static_cast<int64_t>(n) * dim_,
            rows.begin() + static_cast<int64_t>(n_true) * dim_, rows.begin());
  n_true -= n;
}

// Tokens behind the text are the chain's.
HeadOut HeadDrafter::read(int module, int from, int n, int n_next, bool logits,
                          std::span<const TokenId> chain) {
  const Mat<const float> inputs(modules_[module].inputs.data(), kWorkspaceRows, dim_);
  row_tokens_.clear();
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(state_->rows(module)) + static_cast<size_t>(i + module) + 1;
    row_tokens_.push_back(at < text_.size() ? text_[at] : chain[at - text_.size()]);
  }
  return head_->forward({.module = module,
                         .hidden = inputs.middle(from, n),
                         .tokens = row_tokens_,
                         .n_next = n_next,
                         .n_logits = logits ? 1 : 0},
                        *state_, *workspace_);
}

// Commits every row that the text allows, but for the newest one of the first module.
void HeadDrafter::catch_up() {
  for (int m = 0; m < n_modules_; ++m) {
    state_->rollback(m);
    const int known = static_cast<int>(text_.size()) - 1 - m - state_->length(m);
    const int n = std::min(modules_[m].n_true - (m == 0 ? 1 : 0), known);
    if (n <= 0) continue;
    const bool feeds = m + 1 < n_modules_;
    const HeadOut out = read(m, 0, n, feeds ? n : 0, false, {});
    state_->commit(m, n);
    drop_inputs(m, n);
    if (!feeds) continue;
    add_inputs(m + 1, modules_[m + 1].n_true, out.next);
    modules_[m + 1].n_true += n;
  }
}

const HeadState& HeadDrafter::settled() {
  catch_up();
  return *state_;
}

int HeadDrafter::settled_length() {
  catch_up();
  int length = state_->length(0);
  for (int m = 1; m < n_modules_; ++m) length = std::min(length, state_->length(m));
  return length;
}

// --- drafts --------------------------------------------------------------------------------------

// A single module reads what is aside together with the newest row.
void HeadDrafter::start() {
  if (n_modules_ > 1)
    catch_up();
  else
    state_->rollback(0);
  depth_ = 0;
}

Draft HeadDrafter::draft_from(const HeadOut& out) const {
  const auto scores = out.logits.row(0);
  const int best = argmax(scores);
  if (best < 0) return {.token = head_->full_id(0), .source = DraftSource::Mtp, .evidence = 0};
  const auto level = static_cast<int>(top_probability(scores, best) * kEvidenceLevels);
  return {.token = head_->full_id(best),
          .source = DraftSource::Mtp,
          .evidence = static_cast<uint8_t>(std::clamp(level, 0, kEvidenceLevels - 1))};
}

Draft HeadDrafter::next(std::span<const TokenId> chain) {
  const auto depth = static_cast<int>(chain.size()) + 1;
  check(depth > depth_ && depth <= kMostDrafts, "the chain of a round grows");
  Draft draft;
  while (depth_ < depth) {
    const bool wanted = depth_ + 1 == depth;
    const HeadOut out = read_depth(depth_ + 1, wanted, chain);
    if (wanted) draft = draft_from(out);
    ++depth_;
  }
  return draft;
}

// Depth 1 reads what the first module has aside; those rows are text and stand. Depth d <= K has
// the rows of module d - 1 that depend on the chain, the last of which scores; each module hands
// its own on.
HeadOut HeadDrafter::read_depth(int depth, bool logits, std::span<const TokenId> chain) {
  if (depth == 1) return read_text(logits);
  const int m = std::min(depth, n_modules_) - 1;
  const int n_true = modules_[m].n_true;
  const bool recycles = depth > n_modules_;
  if (recycles) add_inputs(m, n_true, {recycled_.data(), 1, dim_});
  const int rows = static_cast<int>(text_.size()) - 1;  // that the trunk's hiddens allow
  const int n = recycles ? 1 : rows - state_->length(m);
  const HeadOut out = read(m, recycles ? n_true : 0, n, n, logits, chain);
  if (depth < n_modules_)
    add_inputs(m + 1, modules_[m + 1].n_true, out.next);
  else
    std::ranges::copy(out.next.row(n - 1), recycled_.begin());
  return out;
}

HeadOut HeadDrafter::read_text(bool logits) {
  const int n = modules_[0].n_true;
  check(n > 0, "the trunk has read a token since the last draft");
  const HeadOut out = read(0, 0, n, 1, logits, {});
  state_->commit(0, n);
  drop_inputs(0, n);
  if (n_modules_ > 1)
    add_inputs(1, modules_[1].n_true++, out.next);
  else
    std::ranges::copy(out.next.row(0), recycled_.begin());
  return out;
}

int HeadDrafter::draft(std::span<Draft> out) {
  if (out.empty()) return 0;
  start();
  chain_.clear();
  for (Draft& draft : out) {
    draft = next(chain_);
    chain_.push_back(draft.token);
  }
  return static_cast<int>(out.size());
}

}  // namespace paceline
