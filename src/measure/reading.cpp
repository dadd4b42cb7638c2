#include "measure/reading.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/argmax.h"
#include "kernels/softmax.h"
#include "spec/sequence.h"

namespace paceline::measure {
namespace {

// How many of n rows stand in the block'th block that chooses.
int n_standing(int block, int n, int width) {
  const int every = std::max(8, width);
  if (n == 1 || block % every != 1) return n;
  return 1 + block / every % (n - 1);
}

TrunkOut top_rows(const TrunkOut& out, int n) {
  const auto before = out.before_norm;
  return {.logits = out.logits.top(n),
          .hidden = out.hidden.top(n),
          .before_norm = before.rows > 0 ? before.top(n) : before};
}

}  // namespace

Result<void> read_blocks(const Engine& engine, std::span<const TokenId> text,
                         const ReadingOptions& options, const SeeBlock& see) {
  const int total = static_cast<int>(text.size());
  const int end = total - 1;  // nothing is chosen behind the last token
  check(options.first >= 0 && options.width >= 1 && end > options.first, "rows that choose");
  if (total > engine.context())
    return Error{ErrorCode::TooLarge, "the text is longer than the context"};
  const Model& model = engine.model();
  auto state = model.make_state(total, engine.cache_type());
  if (!state) return state.error();
  const int rows = std::max(kPrefillRows, options.width);
  auto workspace = model.make_workspace(rows, options.width);
  if (!workspace) return workspace.error();
  Block block(rows);

  const int vocab_size = model.info().vocab_size;
  int n_blocks = 0;  // that choose

  for (int at = 0; at < end; at = (*state)->length()) {
    if (options.stop && options.stop()) return Error{ErrorCode::Interrupted, "interrupted"};
    const bool chooses = at >= options.first;
    const int n =
        chooses ? std::min(options.width, end - at) : std::min(kPrefillRows, options.first - at);
    const int stand = chooses && options.drafts_fall ? n_standing(n_blocks++, n, options.width) : n;
    block.reset(at);
    for (int i = 0; i < n; ++i)
      block.add(i < stand ? text[at + i] : (text[at + i] + 1) % vocab_size);
    const auto out =
        model.forward(block, **state, chooses ? LogitRows::All : LogitRows::None, **workspace);
    if (chooses) see(at, top_rows(out, stand));
    (*state)->commit(stand);
  }
  return {};
}

Result<void> read_given(const Engine& engine, std::span<const TokenId> text,
                        const ReadingOptions& options, const SeeLogits& see) {
  return read_blocks(engine, text, options, [&](int first, const TrunkOut& out) {
    for (int i = 0; i < out.logits.rows; ++i) see(first + i, out.logits.row(i));
  });
}

Result<void> record_given(const Engine& engine, std::span<const TokenId> text, RowSink& sink) {
  constexpr int kWidth = 128;
  const int rows = static_cast<int>(text.size()) - 1;
  return read_blocks(engine, text, {.width = std::min(kWidth, rows)},
                     [&](int first, const TrunkOut& out) {
                       const auto next = text.subspan(first + 1, out.logits.rows);
                       for (int i = 0; i < out.logits.rows; ++i)
                         sink.chosen(next[i], argmax(out.logits.row(i)) == next[i]);
                       sink.rows(next, out.at(sink.tap()));
                     });
}

Result<double> mean_nll(const Engine& engine, std::span<const TokenId> text) {
  constexpr int kWidth = 32;
  double sum = 0;
  auto read =
      read_given(engine, text, {.width = kWidth}, [&](int position, std::span<const float> logits) {
        sum += static_cast<double>(log_sum_exp(logits)) -
               static_cast<double>(logits[text[position + 1]]);
      });
  if (!read) return read.error();
  return sum / static_cast<double>(text.size() - 1);
}

}  // namespace paceline::measure
