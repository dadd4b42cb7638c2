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
  std::unique_ptr<SequenceState> state;
  Block block;                   // what the trunk reads next
  std::vector<Draft> guesses;    // room for the drafts of a round
  std::vector<TokenId> emitted;  // tokens of the round under way
  std::vector<int> path;         // the rows of the block that they were chosen from
  std::vector<float> hiddens;    // of that path, (rows, dim), where it is no chain
  TokenId pending = -1;
  int budget = 0;  // tokens that may still be emitted
};

inline constexpr int kPrefillRows = 64;  // rows of a chunk of the prompt; any number, same bytes

// A sequence over this state, which may hold the beginning of the prompt already. budget: at least
// 1; the state has room for prompt and budget but one, since the last token is never read.
// most_drafts: of a round. dim: of hiddens, where drafts may form a tree.
Sequence make_sequence(std::unique_ptr<SequenceState> state, int budget, int most_drafts,
                       int dim = 0);

// Reading the prompt: a chunk at a time is put into the block, read by the trunk alone or in one
// pass with other sequences, and closed.

// The rows that are to get logits: those of the prompt's end.
LogitRows open_chunk(Sequence& seq, std::span<const TokenId> prompt);

enum class Progress { Prompt, Goes, Ended };  // more to read | rounds follow | the text is complete

// Commits the chunk. With the last one emits the token behind the prompt, which belongs to no
// round. Drafter and rule have begun with the same prompt.
Result<Progress> close_chunk(Sequence& seq, std::span<const TokenId> prompt, const TrunkOut& out,
                             Drafter& drafter, AcceptRule& rule, TokenSink& sink);

// All chunks of a sequence that runs alone.
Result<Progress> run_prefill(Sequence& seq, const Model& trunk, Workspace& workspace,
                             std::span<const TokenId> prompt, Drafter& drafter, AcceptRule& rule,
                             TokenSink& sink);

}  // namespace paceline
