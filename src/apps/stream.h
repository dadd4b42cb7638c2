// One generation from start to end, its text shown as it comes.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace paceline::apps {

// Text that became certain, and the depth of the draft that it came with; 0: the trunk's own token.
struct DraftedText {
  std::string text;
  int depth = 0;
  DraftSource source = DraftSource::Scripted;  // of the draft
};

// What a generation left behind.
struct ArmResult {
  DraftShape shape;
  std::string drafter;
  std::vector<TokenId> token_ids;
  std::vector<int> draft_depths;  // of each token; 0: the trunk's own
  std::string text;
  std::vector<DraftedText> pieces;  // the text again
  FinishReason finish_reason = FinishReason::None;
  GenerationStats stats;
  std::vector<TokenLogprob> logprobs;
  std::vector<TokenGap> gaps;
};

// Writes pieces of text to standard output, drafts that stood in colour; or writes nothing.
class TextSink {
 public:
  TextSink(bool on, bool color) : on_(on), color_(color) {}
  void write(std::span<const TextPiece> pieces);
  // A line end behind the text, unless there is one.
  void finish();

 private:
  bool on_;
  bool color_;
  char last_ = 0;
};

// Whether the engine would take such a request, without the memory that a long answer needs. What a
// command is asked for is checked for every prompt before the first is run.
Result<void> check_request(const Engine& engine, Request request);

// Runs until the generation is done or Ctrl-C; then the finish reason is Interrupted.
Result<ArmResult> run_arm(const Engine& engine, const Request& request, TextSink& sink);

}  // namespace paceline::apps
