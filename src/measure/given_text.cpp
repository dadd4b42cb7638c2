#include "measure/given_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/argmax.h"

namespace paceline::measure {

Result<GivenTextReader> GivenTextReader::make(const Engine& engine) {
  GivenTextReader reader(engine);
  auto workspace = engine.model().make_workspace(kBlockRows, kBlockRows);
  if (!workspace) return workspace.error();
  reader.workspace_ = std::move(*workspace);
  return reader;
}

Result<void> GivenTextReader::read(std::span<const TokenId> tokens, RowSink& sink) {
  check(tokens.size() >= 2, "a text of two tokens at least");
  if (tokens.size() > static_cast<size_t>(engine_->context())) {
    return Error{ErrorCode::TooLarge, fmt::format("a text of {} tokens, and the context holds {}",
                                                  tokens.size(), engine_->context())};
  }
  const int rows = static_cast<int>(tokens.size()) - 1;
  auto state = engine_->model().make_state(rows, engine_->cache_type());
  if (!state) return state.error();
  for (int at = 0; at < rows; at += block_.rows()) {
    block_.reset(at);
    for (int i = at; i < std::min(rows, at + kBlockRows); ++i) block_.add(tokens[i]);
    const TrunkOut out = engine_->model().forward(block_, **state, LogitRows::All, *workspace_);
    const auto next = tokens.subspan(at + 1, block_.rows());
    for (int i = 0; i < block_.rows(); ++i)
      sink.chosen(next[i], argmax(out.logits.row(i)) == next[i]);
    (*state)->commit(block_.rows());
    sink.rows(next, out.at(sink.tap()));
  }
  return {};
}

}  // namespace paceline::measure
