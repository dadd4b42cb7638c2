#include "spec/head_drafter.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/softmax.h"
#include "kernels/top_logits.h"

namespace paceline {

HeadDrafter::HeadDrafter(const DraftHead& head, HeadWorkspace& workspace, CacheType cache)
    : head_(&head),
      workspace_(&workspace),
      cache_(cache),
      n_modules_(head.info().config.modules),
      dim_(head.info().dim),
      modules_(n_modules_),
      newest_(dim_) {
  check(workspace.max_rows() >= kWorkspaceRows, "the workspace has room for rows put aside");
  for (Module& module : modules_) {
    module.inputs.resize(static_cast<size_t>(kWorkspaceRows) * dim_);
    module.given.resize(static_cast<size_t>(kMostNodes) * dim_);
  }
  row_tokens_.reserve(kWorkspaceRows);
  top_.reserve(kMostNodes + 1);
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
    add_inputs(0, hidden.middle(done, n));
    done += n;
  }
}

// --- rows of modules -----------------------------------------------------------------------------

void HeadDrafter::add_inputs(int module, Mat<const float> rows) {
  auto& [inputs, n_true, row_of, given] = modules_[module];
  check(n_true + rows.rows <= kWorkspaceRows, "a module's inputs have room");
  std::copy_n(rows.data, static_cast<int64_t>(rows.rows) * dim_,
              inputs.data() + static_cast<int64_t>(n_true) * dim_);
  n_true += rows.rows;
}

void HeadDrafter::drop_inputs(int module, int n) {
  auto& [inputs, n_true, row_of, given] = modules_[module];
  std::copy(inputs.begin() + static_cast<int64_t>(n) * dim_,
            inputs.begin() + static_cast<int64_t>(n_true) * dim_, inputs.begin());
  n_true -= n;
}

HeadOut HeadDrafter::read_text(int module, int n, int n_next, bool logits) {
  const Mat<const float> inputs(modules_[module].inputs.data(), n, dim_);
  row_tokens_.clear();
  for (int i = 0; i < n; ++i)
    row_tokens_.push_back(text_[static_cast<size_t>(state_->length(module) + i + module) + 1]);
  const HeadOut out = head_->forward({.module = module,
                                      .hidden = inputs,
                                      .tokens = row_tokens_,
                                      .n_next = n_next,
                                      .n_logits = logits ? 1 : 0},
                                     *state_, *workspace_);
  state_->commit(module, n);
  drop_inputs(module, n);
  return out;
}

// Commits every row that the text allows, but for the newest one of the first module.
void HeadDrafter::catch_up() {
  for (int m = 0; m < n_modules_; ++m) {
    state_->rollback(m);
    const int known = static_cast<int>(text_.size()) - 1 - m - state_->length(m);
    const int n = std::min(modules_[m].n_true - (m == 0 ? 1 : 0), known);
    if (n <= 0) continue;
    const bool feeds = m + 1 < n_modules_;
    const HeadOut out = read_text(m, n, feeds ? n : 0, false);
    if (feeds) add_inputs(m + 1, out.next);
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
  for (Module& module : modules_) module.row_of.fill(kUnread);
  read_newest_ = false;
}

std::span<float> HeadDrafter::given(int module, int place) {
  return std::span(modules_[module].given).subspan(static_cast<size_t>(place) * dim_, dim_);
}

int HeadDrafter::guesses_from(std::span<const float> logits, std::span<Draft> out) {
  const auto n = static_cast<int>(std::min<size_t>(out.size(), kMostNodes));
  if (argmax(logits) < 0) {
    out[0] = {.token = head_->full_id(0), .source = DraftSource::Mtp};
    return 1;
  }
  top_logits(logits, n, top_);
  std::array<float, kMostNodes> shares = {};
  top_probabilities(logits, top_, shares);
  for (size_t i = 0; i < top_.size(); ++i)
    out[i] = {.token = head_->full_id(top_[i].first),
              .source = DraftSource::Mtp,
              .evidence = evidence_of(shares[i]),
              .second = i > 0};
  return static_cast<int>(top_.size());
}

// The newest row of the text, which gives the first draft, with what is aside.
HeadOut HeadDrafter::read_newest(bool logits) {
  check(modules_[0].n_true > 0, "the trunk has read a token since the last draft");
  read_newest_ = true;
  const HeadOut out = read_text(0, modules_[0].n_true, 1, logits);
  if (n_modules_ > 1)
    add_inputs(1, out.next);
  else
    std::ranges::copy(out.next.row(0), newest_.begin());
  return out;
}

// At depth d <= m module m goes on from what module m - 1 gave a draft earlier, at the same row;
// beyond that the last module goes on from itself.
int HeadDrafter::read_draft(int module, std::span<const Draft> drafts, int place, bool logits,
                            HeadOut* out) {
  int& row = modules_[module].row_of[place];
  if (row != kUnread) return row;
  const int depth = depth_of(drafts, place);
  const int parent = parent_of(drafts, place);
  const auto n_text = static_cast<int>(text_.size());
  if (n_text - 2 - module + std::min(depth, module) < 0) return row = kNoRow;
  const int behind =
      parent == kPending ? kNoRow : read_draft(module, drafts, parent, false, nullptr);
  const float* input = newest_.data();
  if (depth <= module) {
    input = modules_[module].inputs.data();
    if (parent != kPending) {
      read_draft(module - 1, drafts, parent, false, nullptr);
      input = given(module - 1, parent).data();
    }
  } else if (parent != kPending) {
    input = given(module, parent).data();
  }
  row = state_->rows(module) - state_->length(module);
  const HeadOut got = head_->forward({.module = module,
                                      .hidden = {input, 1, dim_},
                                      .tokens = {&drafts[place].token, 1},
                                      .parents = {&behind, 1},
                                      .n_next = 1,
                                      .n_logits = logits ? 1 : 0},
                                     *state_, *workspace_);
  std::ranges::copy(got.next.row(0), given(module, place).begin());
  if (out != nullptr) *out = got;
  return row;
}

int HeadDrafter::guess(std::span<const Draft> drafts, int place, std::span<Draft> out) {
  if (place == kPending) return guesses_from(read_newest(true).logits.row(0), out);
  if (!read_newest_) read_newest(false);
  const int module = std::min(depth_of(drafts, place), n_modules_ - 1);
  check(modules_[module].row_of[place] == kUnread, "a place is asked for before those behind it");
  HeadOut read;
  read_draft(module, drafts, place, true, &read);
  return guesses_from(read.logits.row(0), out);
}

int HeadDrafter::draft(std::span<Draft> out) {
  if (out.empty()) return 0;
  start();
  for (int i = 0; i < static_cast<int>(out.size()); ++i)
    guess(out.first(i), i - 1, out.subspan(i, 1));
  return static_cast<int>(out.size());
}

}  // namespace paceline
