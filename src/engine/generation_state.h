// What a generation holds. Inside the box only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/stop.h"
#include "spec/round.h"

namespace paceline {

// Sits at the end of the round: every token comes by here, and here it is decided whether it is the
// last one.
struct Generation::State final : TokenSink {
  State(Request request_, Sequence seq_, std::unique_ptr<Drafter> drafter_, const char* name,
        std::span<const TokenId> end_ids_, const Tokenizer* tokenizer);

  Result<void> step();
  void interrupt();
  std::span<const TextPiece> take_pieces();

  bool emit(const EmittedToken& token, std::span<const float> logits) override;

  // Fixed at the start.
  Request request;
  std::span<const TokenId> end_ids;  // ascending
  const char* drafter_name;
  int budget;  // tokens: what was asked for, capped by the context
  Depth depth;
  DepthPolicy policy;

  // The sequence and its text. Text is reserved for the longest that it can become.
  Sequence seq;
  std::unique_ptr<Drafter> drafter;
  std::optional<StreamDecoder> decoder;  // none without a tokenizer
  StopScanner stops;
  std::string decoded;  // whole characters, what is held back included
  std::string text;     // what is certain
  std::vector<EmittedToken> tokens;
  std::vector<TokenLogprob> logprobs;

  bool prefilled = false;
  bool done = false;
  FinishReason reason = FinishReason::None;
  GenerationStats stats;

 private:
  // A piece of `text`, kept as a place until the step is over.
  struct Piece {
    size_t begin = 0;
    size_t end = 0;
    EmittedToken token;
  };

  Result<void> prefill();
  Result<void> round();
  void finish(FinishReason why, const EmittedToken& token);
  void release(size_t certain, const EmittedToken& token);

  std::vector<Piece> pieces_;
  std::vector<TextPiece> views_;
};

}  // namespace paceline
