#include "engine/beginning.h"

#include <algorithm>

#include "base/check.h"
#include "spec/sequence.h"

namespace paceline {
namespace {

void append_rows(Mat<const float> rows, std::vector<float>& to) {
  to.insert(to.end(), rows.data, rows.data + static_cast<size_t>(rows.rows) * rows.cols);
}

}  // namespace

Result<std::shared_ptr<const Beginning>> Beginning::read(const Model& model, CacheType cache,
                                                         Workspace& workspace,
                                                         std::span<const TokenId> ids) {
  check(!ids.empty(), "a beginning has a token");
  auto beginning = std::make_shared<Beginning>();
  beginning->ids_.assign(ids.begin(), ids.end());
  beginning->dim_ = model.info().dim;
  auto state = model.make_state(static_cast<int>(ids.size()), cache);
  if (!state) return state.error();
  Block block(kPrefillRows);
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(block.rows())) {
    block.reset(static_cast<int>(at));
    for (const TokenId id : ids.subspan(at, std::min<size_t>(kPrefillRows, ids.size() - at)))
      block.add(id);
    const TrunkOut out = model.forward(block, **state, LogitRows::None, workspace);
    append_rows(out.hidden, beginning->after_);
    append_rows(out.before_norm, beginning->before_);
    (*state)->commit(block.rows());
  }
  beginning->state_ = std::move(*state);
  return std::shared_ptr<const Beginning>(std::move(beginning));
}

Mat<const float> Beginning::hiddens(Tap tap) const {
  const std::vector<float>& rows = tap == Tap::After ? after_ : before_;
  check(!rows.empty(), "the trunk has hiddens at this tap");
  return {rows.data(), static_cast<int>(ids_.size()), dim_};
}

}  // namespace paceline
