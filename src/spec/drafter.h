// A drafter guesses the tokens that come next. Whatever it guesses, the text stays the trunk's own;
// only the speed depends on it.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "models/model.h"

namespace paceline {

enum class DraftSource : uint8_t { Lookup, Scripted, Mtp };
inline constexpr int kDraftSources = 3;
const char* to_string(DraftSource source);  // "lookup"

// One guess. Drafts form a chain; for a tree each will also name the draft that it continues, which
// becomes the parent of its row in the block.
struct Draft {
  TokenId token = 0;
  DraftSource source = DraftSource::Scripted;
  // How sure the source is, as a level in [0, kEvidenceLevels): for lookup the length of the match,
  // for a head the probability that it gives the token.
  // The policy learns what a level is worth from what was accepted.
  uint8_t evidence = 0;
};
inline constexpr int kEvidenceLevels = 16;

// The calls come in this order: begin; prefill for the chunks of the prompt; observe with the first
// token of the output; then draft (not in every round) and observe in turn. Each row of the trunk's
// hiddens that is committed is handed over exactly once, together with the token that followed it,
// in the order of positions and without a gap, but for the prompt's beginning where it was taken
// over from an earlier sequence and not read again: what a draft head needs to keep one entry of
// its own cache per committed position. Rows that fell never arrive; what draft() itself wrote into
// such a cache is provisional, and observe overwrites it from the trunk's true hiddens.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // The hiddens that prefill() and observe() are to be handed.
  virtual Tap tap() const { return Tap::After; }
  // The dearest source that it drafts from.
  virtual DraftSource source() const { return DraftSource::Lookup; }

  // A new sequence, whose text so far is the prompt. Everything known of an earlier one is
  // forgotten. capacity: the tokens that prompt and output may have together; all memory for them
  // is taken here, since the calls below run inside rounds and allocate nothing.
  virtual void begin(std::span<const TokenId> prompt, int capacity) = 0;

  // The trunk has read a chunk of the prompt: row i of `hidden` (next.size() rows, dim) is its
  // hidden of the token before next[i]. `next` are tokens of the prompt, known since begin; the
  // prompt's last row comes with observe.
  virtual void prefill(std::span<const TokenId> next, Mat<const float> hidden) {
    (void)next, (void)hidden;
  }

  // `tokens`, at least one, were appended to the text: row i of `hidden` (tokens.size() rows, dim)
  // is the trunk's hidden of the token before tokens[i]. The view is valid during the call.
  virtual void observe(std::span<const TokenId> tokens, Mat<const float> hidden) = 0;

  // Guesses for the positions behind the text so far; fewer than out.size(), down to none, where
  // the drafter has nothing worth saying. Returns how many.
  virtual int draft(std::span<Draft> out) = 0;
};

// Plain decoding: a drafter that never says anything.
class SilentDrafter : public Drafter {
 public:
  void begin(std::span<const TokenId> /*prompt*/, int /*capacity*/) override {}
  void observe(std::span<const TokenId> /*tokens*/, Mat<const float> /*hidden*/) override {}
  int draft(std::span<Draft> /*out*/) override { return 0; }
};

}  // namespace paceline
