// Drafts from a draft head, whose cache follows the text.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "models/draft_head.h"
#include "spec/acceptance.h"
#include "spec/drafter.h"

namespace paceline {

// Committed rows, pairs of the trunk's hidden and the token that followed, are put aside as they
// come and read when a draft is asked for, or when there are many: of all rows but the newest,
// which gives the first draft, keys and values alone. So rounds without drafts cost nothing, and
// after a pause the head knows the whole text. Rows that the chain of a round adds are void at the
// next round and come again from the trunk's true hiddens.
//
// Of several modules, module k (from 0) reads row p with token t_{p+k+1} and what module k - 1 gave
// for its own row p, true where t_0 .. t_{p+k} are text; those rows are committed, in every module
// as many as the text allows: length - k. What depends on drafts is provisional, a row for each
// draft and module where somebody asks behind it: the rows of a module form the tree of the drafts.
class HeadDrafter : public TokenDrafter {
 public:
  static constexpr int kMostPending = 64;  // rows put aside
  // Rows that the workspace needs room for.
  static constexpr int kWorkspaceRows = kMostPending + 2 * kMostHeadModules;

  // Both must outlive it; the workspace may serve other drafters in turn.
  HeadDrafter(const DraftHead& head, HeadWorkspace& workspace, CacheType cache);

  // Takes the memory for the next sequence. begun: what an earlier sequence that began alike left
  // (see settled), or null. TooLarge when there is none.
  Result<void> reserve(int capacity, std::unique_ptr<HeadState> begun = nullptr);

  Tap tap() const override { return head_->info().config.tap; }
  DraftSource source() const override { return DraftSource::Mtp; }
  // Where nothing was reserved, memory is taken here and must be there.
  void begin(std::span<const TokenId> prompt, int capacity) override;
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override;
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override;
  int draft(std::span<Draft> out) override;

  // For drafters that ask a head among others. A place is asked for before those behind it, and
  // once a round. The lowest id with evidence 0 where no score is finite.
  void start() override;
  int guess(std::span<const Draft> drafts, int place, std::span<Draft> out) override;

  // Puts into the state what is still aside, but for the newest row, and voids provisional rows:
  // what the next sequence may begin with. Rows that all modules have: settled_length().
  const HeadState& settled();
  int settled_length();

 private:
  struct Module {
    std::vector<float> inputs;  // hiddens of rows length .. length + n_true - 1
    int n_true = 0;

    // Of this round, by draft: which provisional row is the draft's, kUnread, or kNoRow where the
    // text is too short for one; and what the module gave there.
    std::array<int, kMostNodes> row_of = {};
    std::vector<float> given;
  };
  static constexpr int kUnread = -2;
  static constexpr int kNoRow = Block::kNoParent;

  void put_aside(std::span<const TokenId> tokens, Mat<const float> hidden);
  void catch_up();
  // The first n of the module's inputs become rows of the text.
  HeadOut read_text(int module, int n, int n_next, bool logits);
  HeadOut read_newest(bool logits);
  // The module's row of a draft, read with what it depends on unless it was; out: what it gave, if
  // it was read now.
  int read_draft(int module, std::span<const Draft> drafts, int place, bool logits, HeadOut* out);
  int guesses_from(std::span<const float> logits, std::span<Draft> out);
  std::span<float> given(int module, int place);
  void add_inputs(int module, Mat<const float> rows);
  void drop_inputs(int module, int n);

  const DraftHead* head_;
  HeadWorkspace* workspace_;
  CacheType cache_;
  int n_modules_;
  int dim_;
  int reserved_ = -1;  // positions that `state_` was taken for, until begin
  std::unique_ptr<HeadState> state_;
  std::vector<TokenId> text_;
  std::vector<Module> modules_;
  std::vector<float> newest_;  // (dim), what the first module gave at the newest row of the text
  bool read_newest_ = false;   // in this round
  std::vector<TokenId> row_tokens_;
  std::vector<std::pair<TokenId, float>> top_;
};

}  // namespace paceline
