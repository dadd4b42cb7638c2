// Reading a text that is given: the logits that each of its tokens would have been chosen from, and
// the hiddens behind them.
#pragma once

#include <functional>
#include <span>

#include "engine/engine.h"

namespace paceline::measure {

struct ReadingOptions {
  int first = 0;  // the first position whose logits are wanted; those before are a prefill
  int width = 1;  // rows of a block from there on
  // One block in eight (of wider ones, one in as many as they have rows) ends in wrong drafts that
  // fall and are rolled back, as drafts of rounds do, behind one row that stands, two, and so on in
  // turn. Else every row is committed.
  bool drafts_fall = false;
  std::function<bool()> stop = {};  // looked at between passes
};

// Position's logits: what text[position + 1] would be chosen from. Valid during the call.
using SeeLogits = std::function<void(int position, std::span<const float> logits)>;

// Rows are committed as a round commits drafts that stand, and the row at `first` stands in a block
// like those behind it. Rows that fall are not shown. TooLarge for a text beyond the context,
// Interrupted by `stop`.
Result<void> read_given(const Engine& engine, std::span<const TokenId> text,
                        const ReadingOptions& options, const SeeLogits& see);

// The same by blocks, the whole of what the trunk makes of each: rows for positions from `first`
// on.
using SeeBlock = std::function<void(int first, const TrunkOut& out)>;
Result<void> read_blocks(const Engine& engine, std::span<const TokenId> text,
                         const ReadingOptions& options, const SeeBlock& see);

// Hands the text to a sink as a generation would whose prompt is the first token: every row but the
// last token's, and whether each token was the trunk's own first choice. text: at least two.
Result<void> record_given(const Engine& engine, std::span<const TokenId> text, RowSink& sink);

// The mean negative log-likelihood of text[1] and those behind it, in nats. text: at least two.
Result<double> mean_nll(const Engine& engine, std::span<const TokenId> text);

}  // namespace paceline::measure
