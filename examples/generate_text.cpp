// Continues a prompt and prints the text as it comes.
//   generate_text MODEL "Why is the sky blue?"
#include <cstdio>

#include "engine/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: generate_text MODEL PROMPT\n");
    return 2;
  }
  const auto engine = paceline::Engine::open(argv[1]);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 2;
  }

  const paceline::ChatMessage question{"user", argv[2]};
  const auto prompt = engine->chat_template() != nullptr ? engine->encode_chat({&question, 1})
                                                         : engine->encode_text(argv[2]);
  if (!prompt) {
    std::fprintf(stderr, "%s\n", prompt.error().message.c_str());
    return 2;
  }
  paceline::Request request;
  request.prompt = *prompt;
  request.max_tokens = 64;
  auto generation = engine->start(request);
  if (!generation) {
    std::fprintf(stderr, "%s\n", generation.error().message.c_str());
    return 2;
  }
  while (!generation->done()) {
    const auto pieces = generation->step();
    if (!pieces) return 1;
    for (const paceline::TextPiece& piece : *pieces) {
      std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    }
    std::fflush(stdout);
  }
  std::printf("\n%.2f tokens a round\n", generation->stats().tokens_per_round());
  return 0;
}
