#include "models/model.h"

#include <numeric>

#include "base/check.h"
#include "fmt/format.h"
#include "models/draft_head.h"

namespace paceline {

void SequenceState::open_block(const Block& block) {
  check(block.rows() > 0, "a block has rows");
  check(block.first_pos() == length_, "a block continues the committed positions");
  check(block.depth() <= capacity_ - length_, "a block fits into the cache");
  // Room for the widest block of the sequence comes with the first one, that of the prefill, so
  // that no round allocates.
  reserve_rows(block.capacity());
  open_rows_ = block.rows();
  open_parents_.assign(block.parents().begin(), block.parents().end());
}

void SequenceState::reserve_rows(int capacity) {
  if (static_cast<int>(chain_path_.size()) >= capacity) return;
  chain_path_.resize(capacity);
  std::iota(chain_path_.begin(), chain_path_.end(), 0);
  open_parents_.reserve(capacity);
}

void SequenceState::commit(std::span<const int> path) {
  int parent = Block::kNoParent;
  for (const int row : path) {
    check(row >= 0 && row < open_rows_, "a committed row is a row of the block");
    check(open_parents_[row] == parent, "a committed path leads from parent to child");
    parent = row;
  }
  keep(path);
  length_ += static_cast<int>(path.size());
  open_rows_ = 0;
}

void SequenceState::commit(int n_rows) {
  check(n_rows >= 0 && n_rows <= open_rows_, "no more rows are committed than the block has");
  commit(std::span<const int>(chain_path_).first(n_rows));
}

int PassPart::n_logits() const {
  switch (logit_rows) {
    case LogitRows::None:
      return 0;
    case LogitRows::Last:
      return 1;
    case LogitRows::All:
      return block->rows();
  }
  return 0;
}

Result<std::unique_ptr<Model>> Model::beside(int /*threads*/) const {
  return Error{ErrorCode::Unsupported,
               fmt::format("family {} runs one pass at a time here", info().family)};
}

std::vector<HeadShape> Model::head_shapes(int /*modules*/) const { return {}; }

Result<std::unique_ptr<DraftHead>> Model::make_head(const HeadTensors& /*head*/) const {
  return Error{ErrorCode::Unsupported,
               fmt::format("family {} has no draft heads here", info().family)};
}

TrunkOut Model::forward(const Block& block, SequenceState& state, LogitRows rows,
                        Workspace& workspace) const {
  PassPart part = {.block = &block, .state = &state, .logit_rows = rows};
  forward({&part, 1}, workspace);
  return part.out;
}

}  // namespace paceline
