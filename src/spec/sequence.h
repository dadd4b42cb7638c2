// One sequence under way: the trunk, what it remembers, and the memory that passes and rounds need.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "spec/accept.h"
#include "spec/drafter.h"

namespace paceline {

// A token that has become part of the text.
struct EmittedToken {
  TokenId id = 0;
  int depth = 0;  // 0: the trunk's own choice; d >= 1: the draft at depth d stood
  DraftSource source = DraftSource::Scripted;  // of a draft that stood
};

// Takes the tokens of prefill and rounds one by one and decides where the sequence ends: at an end
// token, a stop string, the budget. Inside a block too.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // logits: the trunk's row that the token was chosen from. False when the sequence ends with this
  // token; none follows then.
  virtual bool emit(const EmittedToken& token, std::span<const float> logits) = 0;
};

// What holds between rounds: the text is prompt and output; its last token is pending (committed,
// but not yet seen by the trunk), and the state holds all others: length = prompt + output - 1.
// Keeping that for other kinds of state is the state's own affair, behind SequenceState::commit:
// flat caches do not count void rows; rings keep slack of a block or are written at the commit;
// recurrent and convolution state keeps one copy a row of the block and takes over that of the last
// row kept; in trees the rows of the path are moved together.
struct Sequence {
  const Model* trunk = nullptr;
  std::unique_ptr<SequenceState> state;
  std::unique_ptr<Workspace> workspace;
  Block block;
  std::vector<Draft> guesses;    // room for the drafts of a round
  std::vector<TokenId> emitted;  // tokens of the round under way
  TokenId pending = -1;
  int budget = 0;  // tokens that may still be emitted
};

inline constexpr int kPrefillRows = 64;  // rows of a chunk of the prompt; any number, same bytes

// Takes all memory that prefill and rounds of this sequence need. prompt_tokens, budget: at least
// 1; the caller has held their sum against the context. TooLarge when it does not fit into memory.
Result<Sequence> make_sequence(const Model& trunk, int prompt_tokens, int budget, int max_depth,
                               CacheType cache);

// Reads the prompt in chunks and emits the token behind it, which belongs to no round. False when
// the sequence ended with it. The drafter has begun with the same prompt.
Result<bool> run_prefill(Sequence& seq, std::span<const TokenId> prompt, Drafter& drafter,
                         const AcceptRule& rule, TokenSink& sink);

}  // namespace paceline
