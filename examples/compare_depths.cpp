// Runs the same prompt plain and with four drafts a round, and says whether the text is the same.
//   compare_depths MODEL "Repeat after me: a b c a b c"
#include <cstdio>
#include <string>

#include "engine/engine.h"

namespace {

struct Outcome {
  std::string text;
  double tokens_per_second = 0;
  bool ok = false;
};

Outcome run(const paceline::Engine& engine, const char* prompt, int depth) {
  paceline::Request request;
  if (auto ids = engine.encode_text(prompt)) request.prompt = *ids;
  request.max_tokens = 64;
  request.depth = depth;
  auto generation = engine.start(request);
  if (!generation) {
    std::fprintf(stderr, "%s\n", generation.error().message.c_str());
    return {};
  }
  while (!generation->done()) {
    if (!generation->step()) return {};
  }
  return {generation->text(), generation->stats().tokens_per_second(), true};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: compare_depths MODEL PROMPT\n");
    return 2;
  }
  const auto engine = paceline::Engine::open(argv[1]);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 2;
  }
  const Outcome plain = run(*engine, argv[2], 0);
  const Outcome drafted = run(*engine, argv[2], 4);
  if (!plain.ok || !drafted.ok) return 1;
  const bool same = plain.text == drafted.text;
  std::printf("plain %.1f tokens/s, drafted %.1f tokens/s, same text: %s\n",
              plain.tokens_per_second, drafted.tokens_per_second, same ? "yes" : "no");
  return same ? 0 : 1;
}
