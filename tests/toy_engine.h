// Engines over the toy trunk, and whole generations on them.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"
#include "tests/toy_model.h"
#include "tests/toy_tokenizer.h"

namespace paceline {

inline Engine toy_engine(const ToyOptions& options = {}, std::vector<TokenId> end_ids = {},
                         int context = 1000, std::unique_ptr<Tokenizer> tokenizer = nullptr) {
  auto engine = Engine::with_model(std::make_unique<ToyModel>(options), context, 1,
                                   std::move(end_ids), CacheType::F32, std::move(tokenizer));
  check(engine.has_value(), "a toy engine opens");
  return std::move(*engine);
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<EmittedToken> emitted;
  std::string streamed;              // the pieces, joined
  std::vector<std::string> by_step;  // the pieces of each step, joined
  std::string text;
  FinishReason reason = FinishReason::None;
  GenerationStats stats;
  std::vector<TokenLogprob> logprobs;
  std::string drafter;
  std::string error;
};

inline Answer answer(const Engine& engine, const Request& request) {
  Answer result;
  auto generation = engine.start(request);
  if (!generation) {
    result.error = generation.error().message;
    return result;
  }
  while (!generation->done()) {
    const auto pieces = generation->step();
    if (!pieces) {
      result.error = pieces.error().message;
      break;
    }
    result.by_step.emplace_back();
    for (const TextPiece& piece : *pieces) result.by_step.back() += piece.text;
    result.streamed += result.by_step.back();
  }
  result.emitted = generation->tokens();
  for (const EmittedToken& token : result.emitted) result.tokens.push_back(token.id);
  result.text = generation->text();
  result.reason = generation->finish_reason();
  result.stats = generation->stats();
  result.logprobs = generation->logprobs();
  result.drafter = generation->drafter();
  return result;
}

// The same request without drafts.
inline Answer plain_answer(const Engine& engine, Request request) {
  request.depth = 0;
  request.drafter = DrafterKind::None;
  return answer(engine, request);
}

inline Request scripted(Request request, std::vector<TokenId> script, int depth) {
  request.drafter = DrafterKind::Scripted;
  request.script = std::move(script);
  request.depth = depth;
  return request;
}

}  // namespace paceline
