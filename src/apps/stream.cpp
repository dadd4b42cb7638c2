#include "apps/stream.h"

#include <cstdio>

#include "apps/interrupt.h"
#include "apps/terminal.h"

namespace paceline::apps {

void TextSink::write(std::span<const TextPiece> pieces) {
  if (!on_ || pieces.empty()) return;
  for (const TextPiece& piece : pieces) {
    if (piece.text.empty()) continue;
    last_ = piece.text.back();
    const std::string shown = colored(piece.text, color_ ? piece.token.depth : 0);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
  }
  std::fflush(stdout);
}

void TextSink::finish() {
  if (!on_ || last_ == '\n') return;
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

Result<void> check_request(const Engine& engine, Request request) {
  request.max_tokens = 1;
  request.depth = 0;
  const auto generation = engine.start(request);
  return generation ? Result<void>() : Result<void>(generation.error());
}

Result<ArmResult> run_arm(const Engine& engine, const Request& request, TextSink& sink) {
  auto generation = engine.start(request);
  if (!generation) return generation.error();
  ArmResult result;
  const auto take = [&](std::span<const TextPiece> pieces) {
    sink.write(pieces);
    for (const TextPiece& piece : pieces)
      if (!piece.text.empty())
        result.pieces.push_back({std::string(piece.text), piece.token.depth, piece.token.source});
  };
  while (!generation->done()) {
    if (interrupted()) {
      take(generation->interrupt());
      break;
    }
    const auto pieces = generation->step();
    if (!pieces) return pieces.error();
    take(*pieces);
  }
  sink.finish();

  result.shape = {request.depth, request.tree};
  result.drafter = generation->drafter();
  for (const EmittedToken& token : generation->tokens()) {
    result.token_ids.push_back(token.id);
    result.draft_depths.push_back(token.depth);
  }
  result.text = generation->text();
  result.finish_reason = generation->finish_reason();
  result.stats = generation->stats();
  result.logprobs = generation->logprobs();
  result.gaps = generation->gaps();
  return result;
}

}  // namespace paceline::apps
