// What a generation holds. Inside the box only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine_state.h"
#include "engine/stop.h"
#include "spec/head_drafter.h"
#include "spec/round.h"

namespace paceline {

// Sits at the end of the round: every token comes by here, and here it is decided whether it is the
// last one.
struct Generation::State final : TokenSink {
  State(Request request_, Engine::State& engine_, Sequence seq_, std::unique_ptr<AcceptRule> rule_,
        std::unique_ptr<Drafter> drafter_, const char* name);
  ~State() override;

  // A step in two halves, between which the trunk reads the block: the next chunk of the prompt, or
  // a round.
  void clear_pieces() { pieces_.clear(); }
  PassPart open();
  void close(const TrunkOut& out, double pass_seconds);
  void interrupt();
  std::span<const TextPiece> take_pieces();

  bool emit(const EmittedToken& token, std::span<const float> logits) override;

  // Fixed at the start.
  Request request;
  Engine::State& engine;
  const char* drafter_name;
  int budget;  // tokens: what was asked for, capped by the context
  Depth depth;
  DepthPolicy policy;
  bool declined = false;  // drafts were asked for, and the gate said no

  // The sequence and its text. Text is reserved for the longest that it can become.
  Sequence seq;
  std::unique_ptr<AcceptRule> rule;
  std::unique_ptr<Drafter> drafter;
  HeadDrafter* head_drafter = nullptr;   // of those, the one with a head's cache, if any
  std::optional<StreamDecoder> decoder;  // none without a tokenizer
  StopScanner stops;
  std::string decoded;  // whole characters, what is held back included
  std::string text;     // what is certain
  std::vector<EmittedToken> tokens;
  std::vector<TokenLogprob> logprobs;
  std::vector<TokenGap> gaps;

  bool prefilled = false;
  bool done = false;
  std::optional<Error> error;  // what ended it, if it was that
  FinishReason reason = FinishReason::None;
  GenerationStats stats;

 private:
  // A piece of `text`, kept as a place until the step is over.
  struct Piece {
    size_t begin = 0;
    size_t end = 0;
    EmittedToken token;
  };

  Result<void> close_prompt(const TrunkOut& out, double pass_seconds);
  Result<void> close_round(const TrunkOut& out, double pass_seconds);
  void sink_beginning(int rows);
  void sink_chunk(int first, const TrunkOut& out);
  void keep_prefix();
  void finish(FinishReason why, const EmittedToken& token);
  void release(size_t certain, const EmittedToken& token);

  void add_gap(const EmittedToken& token, std::span<const float> logits);

  OpenRound round_;
  std::vector<std::pair<TokenId, float>> top_two_;
  double open_seconds_ = 0;  // that opening the step took
  std::vector<Piece> pieces_;
  std::vector<TextPiece> views_;
};

}  // namespace paceline
