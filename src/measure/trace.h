// Traces: what a trunk makes of a given text, position by position, and what two of them differ in.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace paceline::measure {

struct TracePoint {
  int piece = 0;       // texts longer than the context are read in pieces
  int position = 0;    // of the row within its piece
  TokenId next = 0;    // the token that the text has behind it
  double nll = 0;      // of that token, in nats; over all logits
  double log_sum = 0;  // log of the sum of exp of all logits; NaN where nobody told
  std::vector<std::pair<TokenId, float>> top;  // the largest logits, descending, ties by id

  // How far the second is below the first; infinite where there is one alone.
  float gap() const;
};

struct TraceOptions {
  int width = 1;      // rows of a block
  int prefill = 512;  // tokens of each piece in front of the first row that is traced
  int piece = 0;      // tokens of a piece at most, more than prefill; 0: the engine's context
  int top = 16;       // logits kept of each row
  std::function<bool()> stop = {};
  std::function<void(double share)> progress = {};
};

// Hands every traced row to `take`, in order; some blocks end in wrong drafts that fall, as
// ReadingOptions says. BadUsage where no piece is longer than the prefill,
// BadFormat for a row without a finite maximum, Interrupted by `stop`.
Result<void> trace_text(const Engine& engine, std::span<const TokenId> text,
                        const TraceOptions& options,
                        const std::function<Result<void>(const TracePoint&)>& take);

// A candidate against a reference, over the rows of both.
struct TraceComparison {
  // Gaps of the reference from 0, 0.5, 1, 2, 5, 10 up.
  static constexpr std::array<float, 6> kGaps = {0, 0.5f, 1, 2, 5, 10};
  static constexpr float kDecided = 2.0f;  // a gap from which on a choice counts as decided

  int64_t positions = 0;
  int64_t differing = 0;  // first choices
  int64_t moved = 0;      // rows with a logit among those kept that is not the same number
  int64_t decided = 0;
  int64_t differing_decided = 0;
  std::array<int64_t, kGaps.size()> by_gap = {};
  std::array<int64_t, kGaps.size()> differing_by_gap = {};
  // Where the reference's first choice stands among the candidate's; the last entry: not among
  // those that were kept.
  std::vector<int64_t> rank_of_reference;
  // |difference| of the logit of the reference's first choice, ascending; rows of which the
  // candidate kept it.
  std::vector<float> deltas;
  double reference_nll = 0;  // sums
  double candidate_nll = 0;
  // Divergence of the candidate from the reference (Kullback and Leibler), in nats a row, tokens
  // that one of the two did not keep put together: what the whole vocabulary gives is no smaller.
  // None where a trace lacks the sum of all logits.
  std::optional<double> kl;
  double kl_share = 0;  // the reference's probability of tokens that both kept; mean

  double disagreement() const;
  double disagreement_decided() const;
  double quantile(double share) const;  // of the deltas; 0 where there are none
  enum class Verdict { Same, Undecided, Decided };
  Verdict verdict() const;
};
const char* to_string(TraceComparison::Verdict verdict);  // "same", "undecided", "decided"

// BadUsage where the two are not over the same rows of the same text, naming the first that is not.
Result<TraceComparison> compare_traces(const std::vector<TracePoint>& reference,
                                       const std::vector<TracePoint>& candidate);

}  // namespace paceline::measure
