#include "spec/replay.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace paceline {
namespace {

// Nothing is remembered but the position.
class RecordedState : public SequenceState {
 public:
  explicit RecordedState(int capacity) : SequenceState(capacity) {}
  void read(const Block& block) { open_block(block); }
  int64_t bytes() const override { return 0; }
  Result<std::unique_ptr<SequenceState>> fork(int capacity, int /*length*/) const override {
    return std::unique_ptr<SequenceState>(std::make_unique<RecordedState>(capacity));
  }
  void append_bytes(int /*position*/, std::vector<std::byte>& /*to*/) const override {}
};

// What stands in the record is what the trunk chose.
class RecordedRule : public AcceptRule {
 public:
  explicit RecordedRule(std::span<const TokenId> tokens) : tokens_(tokens) {}

 private:
  TokenId choose(std::span<float> /*logits*/, int position,
                 std::span<const TokenId> /*drafts*/) override {
    const auto at = static_cast<size_t>(position);
    return at < tokens_.size() ? tokens_[at] : 0;  // behind the end, where nobody looks
  }

  std::span<const TokenId> tokens_;
};

class EndOfRecord : public TokenSink {
 public:
  explicit EndOfRecord(int n_output) : left_(n_output) {}
  bool emit(const EmittedToken& /*token*/, std::span<const float> /*logits*/) override {
    return --left_ > 0;
  }

 private:
  int left_;
};

// The trunk's part of a pass: no logits, and recorded hiddens. Rows of drafts that fall get those
// of other tokens, or what was there before: they are handed to nobody.
class RecordedTrunk {
 public:
  explicit RecordedTrunk(const RecordedText& text, int max_rows)
      : text_(text), rows_(static_cast<size_t>(max_rows) * text.dim) {}

  TrunkOut read(const Block& block, RecordedState& state) {
    state.read(block);
    const Mat<float> hidden(rows_.data(), block.rows(), text_.dim);
    const int n_recorded = static_cast<int>(text_.tokens.size()) - 1;
    for (int row = 0; row < block.rows() && text_.hidden; ++row) {
      const int position = block.positions()[row];
      if (position < n_recorded) text_.hidden(position, hidden.row(row));
    }
    return {
        .logits = Mat<float>(nullptr, block.rows(), 0), .hidden = hidden, .before_norm = hidden};
  }

 private:
  const RecordedText& text_;
  std::vector<float> rows_;
};

}  // namespace

RoundCounts replay_stream(const RecordedText& text, Drafter& drafter, const Depth& depth) {
  const int n_output = static_cast<int>(text.tokens.size()) - text.n_prompt;
  check(text.n_prompt >= 1 && n_output >= 1, "a recorded text has a prompt and an output");
  check(text.budget >= n_output, "an output is no longer than its budget");
  check(text.hidden == nullptr || text.dim > 0, "recorded hiddens have a width");
  const auto prompt = text.tokens.first(text.n_prompt);
  auto owned = std::make_unique<RecordedState>(text.n_prompt + text.budget - 1);
  RecordedState& state = *owned;
  Sequence seq = make_sequence(std::move(owned), text.budget, depth.most_drafts(), text.dim);
  RecordedTrunk trunk(text, seq.block.capacity());
  RecordedRule rule(text.tokens);
  EndOfRecord sink(n_output);
  RoundCounts counts;
  counts.begin(depth.limit);
  drafter.begin(prompt, text.n_prompt + text.budget);

  Progress progress = Progress::Prompt;
  while (progress == Progress::Prompt) {
    const bool last = open_chunk(seq, prompt) == LogitRows::Last;
    TrunkOut out = trunk.read(seq.block, state);
    out.logits.rows = last ? 1 : 0;
    const auto closed = close_chunk(seq, prompt, out, drafter, rule, sink);
    check(closed.has_value(), "a record has a token behind every row");
    progress = *closed;
  }
  for (bool ended = progress == Progress::Ended; !ended;) {
    const OpenRound round = open_round(seq, drafter, depth);
    const TrunkOut out = trunk.read(seq.block, state);
    const auto closed = close_round(seq, round, out, drafter, depth, rule, sink);
    check(closed.has_value(), "a record has a token behind every row");
    counts.add(*closed, round.drafts);
    ended = closed->ended;
  }
  return counts;
}

}  // namespace paceline
